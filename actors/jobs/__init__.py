"""One job from submission to its end: the JobMaster, and the books that it joins. Pure: effects are data."""
