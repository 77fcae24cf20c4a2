"""Common English words: what a text may share with another one by chance. Their order says nothing."""

_WORDS = """
    a about above across after again against all along also although always among an and another any are around as
    ask at away back be because been before began being below between both but by call came can case change check
    come could day did do does done down during each early either end enough even every example fact few file find
    first follow for found from full further gave get give given go good great had half hand has have he help her
    here high him his how however if in inside instead into is it its just keep kind know large last late later
    least left less let like line list little long look low made make many may me mean means might more most move
    much must my name near need never new next no not nothing now number of off often old on once one only open or
    order other our out over own page part past place point put quite rather read right run said same say second
    see seem set several shall she should show side since small so some soon start state step still stop such take
    task tell test than that the their them then there these they thing think this those though three through time
    to together too toward try turn two under until up upon us use used using very want was way we well were what
    when where whether which while who whole whose why will with within without word work would write year yes yet
    you your
"""
COMMON = frozenset(_WORDS.split())
