"""Studies of the checks themselves: what would a run have seen?"""
