"""The statements of kpotufe2020."""
