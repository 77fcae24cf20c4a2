"""Letters of other scripts that look like Latin ones, by script; compatibility forms are not here (NFKD folds them)."""

# ruff: noqa: RUF001
from __future__ import annotations

_CYRILLIC = str.maketrans("аеорсухіјѕһԁԛԝѵкмтнвгАВЕКМНОРСТУХІЈЅԚԜ", "aeopcyxijshdqwvkmthbrABEKMHOPCTYXIJSQW")
_GREEK = str.maketrans("αονρτυχικεηΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aovptuxikenABEZHIKMNOPTYX")
_CHEROKEE = str.maketrans("ᎠᎡᎢᎪᎫᎬᎳᎷᎻᎽᏀᏃᏎᏏᏒᏔᏕᏙᏚᏞᏟᏢᏦᏧᏴᏳ", "DRTAJEWMHYGZ4bRWSVSLCPKdBG")
_LISU = str.maketrans("ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ", "BPDTGKJCZFMNLSRVHWXYAEIOU")
_COPTIC = str.maketrans("ⲞⲟⲢⲣⲤⲥⲔⲘⲚⲎⲒⲦⲬ", "OoPpCcKMNHITX")
_ARMENIAN = str.maketrans("օսոհցՕՍ", "ounhgOU")
_LATIN = str.maketrans("ıłøđɑɡȷŁØĐ", "ilodagjLOD")

LOOKALIKES: dict[str, str] = {
    chr(odd): chr(plain)
    for table in (_CYRILLIC, _GREEK, _CHEROKEE, _LISU, _COPTIC, _ARMENIAN, _LATIN)
    for odd, plain in table.items()
}
