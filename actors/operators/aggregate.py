from .operator import Operator
class Aggregation: pass
class Spec: pass
Count=Sum=Min=Max=Avg=Spec
class ColumnarAggregate(Operator):
    takes="columns"
    def __init__(self, *a, **k): pass
