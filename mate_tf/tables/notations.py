"""How people write numbers, dates and times: the words and the expressions that values.py reads.

The expressions are for texts in lower case and plain characters. RE2 reads MISSING too, for the
graph of an exported model (serving/text_signature.py).
"""

import functools
import re
import unicodedata

from mate_tf.tables.units import GLUED_UNITS

_NO_VALUES = (
    ". .. ... \u2026 ? : n/a na n.a. n.a n/d n.d. n/c n/k nan nat null none nil tba tbc tbd "
    "unknown undefined (null) [null] (na) <na> <null> \\n k.a. n.v. n.r. s.d. s/d s/i н/д (blank) "
    "(empty) 0000-00-00 0000-00-00t00:00:00 不明 なし 無 无 없음 該当なし 해당없음 loading... inf "
    "-inf +inf infinity -infinity ∞ -∞"
).split()
_DASHES = "\u2010\u2011\u2012\u2212\u2013\u2014\u2015\ufe63"  # hyphens, the minus sign, dashes
_MINUS = rf"[-{_DASHES}]"
# A cell without a value; errors of spreadsheets in several languages, and "###" of narrow columns.
MISSING = re.compile(
    rf"(?:{'|'.join(map(re.escape, _NO_VALUES))}|{_MINUS}{{1,3}})"
    r"(?: ?\*+| ?\[[^\[\]]{1,6}\]|[¹²³†‡])?"
    r"|not (?:available|applicable|reported|stated|recorded)|no data|keine angaben?|unbekannt"
    r"|sin datos|нет данных|: [a-z]{1,2}|n\. a\.|k\. a\.|#+"
    r"|#[¡¿]?[a-zà-ÿа-я][a-z0-9à-ÿа-я_/]*[!?]|#(?:div/0|n/?[adv]|н/д|n/a [a-z/ ]+|getting_data)"
    r"|err:\d{3}|-?1\.#[a-z]+"
)
# What a row of totals is called.
TOTAL = re.compile(
    r"(?:grand |sub-?)?totals?\b.*|.*\btotals?:?|(?:sum|overall|all|altogether):?|sum of .*|"
    r"(?:gesamt|summe|insgesamt|zwischensumme|zusammen|totale|totales|totaux|suma|summa|somma|soma|"
    r"итого|всего|合計|合计|总计|總計|小計|小计|총계|합계).*|"
    r"(?:ensemble|net(?:to)?(?: (?:profit|income|result))?|closing balance|razem|ogółem|toplam|"
    r"genel toplam|totaal|totalt|i alt|yhteensä|összesen|celkem|"
    r"spolu|ukupno|skupaj|jumlah|tổng|tổng cộng|σύνολο|разом|общо|รวม|รวมทั้งสิ้น|"
    r"कुल|कुल योग|المجموع|الإجمالي|"
    r'סה"כ|סך הכל|σ|∑)[: ]*'
)
# Marks of a text's direction, which no one sees.
DIRECTIONS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")

MONTHS = (
    "january february march april may june july august september october november december"
).split()
# Their other names, in the order of the months.
_OTHER_MONTHS = (
    "jan januar jänner janvier janv enero gennaio janeiro januari ene gen января январь янв "
    "stycznia styczeń sty ledna leden ocak oca január ianuarie січня tammikuuta ιανουαρίου يناير",
    "feb februar février fevrier febrero febbraio fevereiro februari févr fév fevr fev "
    "февраля февраль фев lutego luty lut února únor şubat şub február februarie лютого feber "
    "helmikuuta φεβρουαρίου فبراير",
    "mar märz maerz mars marzo março marco maart mär mrz марта март мар marca marzec marts března "
    "březen mart március martie березня maret maaliskuuta μαρτίου مارس",
    "apr avril abril aprile avr abr апреля апрель апр kwietnia kwiecień kwi dubna duben nisan nis "
    "április aprilie квітня huhtikuuta απριλίου أبريل ابريل",
    "mai mayo maggio maio mei mag мая май maja maj května květen mayıs május травня toukokuuta "
    "μαΐου مايو",
    "jun juni juin junio giugno junho giu июня июнь czerwca czerwiec června červen haziran június "
    "iunie червня cze haz kesäkuuta ιουνίου يونيو",
    "jul juli juillet julio luglio julho juil lug июля июль lipca lipiec července červenec temmuz "
    "július iulie липня lip tem heinäkuuta ιουλίου يوليو",
    "aug août aout agosto augustus ago августа август авг sierpnia sierpień augusti srpna srpen "
    "ağustos augusztus серпня agustus sie ağu elokuuta αυγούστου أغسطس اغسطس",
    "sep sept septembre septiembre settembre setembro set сентября сентябрь сен září eylül "
    "szeptember septembrie вересня września wrzesień wrz eyl syyskuuta σεπτεμβρίου سبتمبر",
    "oct oktober octobre octubre ottobre outubro okt ott out октября октябрь окт października "
    "října říjen ekim eki október octombrie жовтня paź lokakuuta οκτωβρίου أكتوبر اكتوبر",
    "nov novembre noviembre novembro ноября ноябрь ноя listopada listopad listopadu kasım "
    "noiembrie листопада lis kas marraskuuta νοεμβρίου نوفمبر",
    "dec dezember décembre decembre diciembre dicembre dezembro dez déc dic декабря декабрь дек "
    "grudnia grudzień prosince prosinec aralık decembrie грудня desember gru ara joulukuuta "
    "δεκεμβρίου ديسمبر",
)
MONTH_NUMBERS = {
    name: number
    for number, (month, others) in enumerate(zip(MONTHS, _OTHER_MONTHS, strict=True), start=1)
    for name in (month, *others.split())
}
CARDINALS = "zero one two three four five six seven eight nine ten eleven twelve".split()
ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
).split()
NUMBER_WORDS = {word: float(n) for words in (CARDINALS, ORDINALS) for n, word in enumerate(words)}
YEARS = range(1500, 2101)  # four digits alone that may be a year

# Powers of ten in words, "mm" only beside a currency. Those of WEAK_MULTIPLES are so only beside a
# currency or others of these.
_MULTIPLES = {
    2: "百",
    3: "k thousand thousands mila tsd tsd. tausend mille 千 천 тыс тыс. тысяч tys tys. tis tis. "
    "ribu nghìn",
    4: "万 萬 만",
    5: "lakh lakhs lac lacs 十万 लाख",
    6: "mm million millions mn mln mln. mio mio. mil. mill. millionen millón millones milhões "
    "milhão milione milioni miljoen miljon miljoner milj. milyon juta triệu млн млн. миллионов "
    "百万 百萬",
    7: "crore crores 千万 千萬 करोड़",
    8: "億 亿 억",
    9: "bn billion billions mrd mrd. mld mld. mia mia. milliarde milliarden milliard milliards mds "
    "miliardi miliardo miljard miljarder milyar miliar bilhão bilhões tỷ млрд млрд. миллиардов "
    "十億",
    12: "tn trillion trillions bio bio. billón billones trilhão trilhões 兆 조",
}
MULTIPLES = {word: power for power, words in _MULTIPLES.items() for word in words.split()}
WEAK_MULTIPLES = {"k": 3, "m": 6, "b": 9, "t": 12, "cr": 7, "cr.": 7, "l": 5, "md": 9}
GLUED_MULTIPLES = {"k": 3, "m": 6, "b": 9}
# 2.5M and 12M in a column are millions, but 100M alone may be metres, and 1B a place.
IN_CAPITALS, IN_PARTS = re.compile(".*[0-9] ?[MB]"), re.compile(".*[.,][0-9]+ ?[MB]")
_SIGNS_OF_CURRENCIES = "$€£¥₹₽₩₺₪₫₴₦฿¢₱₡₵₸₾৳₲₭₮₼₿₨؋៛﷼"
_NAMES_OF_SIGNS = {
    "$": "usd us$ dollar dollars",
    "€": "eur euro euros",
    "£": "gbp pounds",
    "¥": "jpy yen 円",
    "₹": "inr rs rs.",
    "₽": "rub руб руб.",
    "₩": "krw 원",
    "₺": "try tl",
    "₫": "vnd đ",
    "CNY": "cny rmb yuan",
    "MYR": "myr rm",
}
_CODES = (
    "chf cad aud nzd hkd sgd sek nok dkk pln czk huf brl mxn zar au$ ca$ a$ c$ nz$ hk$ s$ r$ "
    "mx$ nt$ kr kr. zł kč ft lei fr. sfr. 元 aed sar ils thb idr twd clp uah isk egp "
    "ngn kes rp rp. s/ s/. bs. krw php pkr bdt lkr kwd qar bgn rsd"
).split()
CURRENCIES = {
    **{code: code.strip(".").upper() for code in _CODES},
    **{name: sign for sign, names in _NAMES_OF_SIGNS.items() for name in names.split()},
    **{sign: sign for sign in _SIGNS_OF_CURRENCIES},
}
# Those of places where points separate thousands, never decimals.
POINTED_CURRENCIES = frozenset("₫ IDR RP CLP ISK R$".split())
CURRENCY_UNITS = frozenset(CURRENCIES.values())
SIGNED_UNITS = GLUED_UNITS | CURRENCY_UNITS
# What a currency is for: $3.99/lb, €2 per kg.
PER = re.compile(r"(?P<currency>[^\s/]*) ?(?:/ ?|per )(?P<unit>[a-z²³]+)\.?")
CLOCK_WORDS = {
    **dict.fromkeys(("noon", "12 noon", "midday"), 43_200.0),
    **dict.fromkeys(("midnight", "12 midnight"), 0.0),
}


def any_of(words: object) -> str:
    """An expression for any of the words, the longest first."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))  # type: ignore[call-overload]


# Streets, before which numbers are those of houses.
STREET = re.compile(
    r".+ (?:st|str|street|ave|avenue|rd|road|blvd|boulevard|ln|lane|dr|drive|way|ct|court|pl|place|"
    r"terrace|hwy|highway|straße|strasse|weg|platz)\b.*|(?:rue|via|calle|rua|avenida|place|quai) .*"
    r"|(?:street|avenue|ave\.?|boulevard|blvd\.?)"
)
GENERATION = re.compile("[2-6]G")  # of mobile telephones, no grams

# Numbers.
_CURRENCY = f"(?:{any_of(CURRENCIES)})"
NO_MONEY = re.compile(rf"{_CURRENCY} ?{_MINUS}{{1,2}}|{_MINUS}{{1,2}} ?{_CURRENCY}")  # $ -
_ABOUTS = (
    "~ ≈ < > ≤ ≥ ± # c. ca ca. circa about approx approx. over under around nearly almost".split()
)
ABOUT = f"(?:(?:{any_of(_ABOUTS)}) ?)?"
_DIGITS = r"(?:\d|[.,]\d)(?:[.,' ]?\d)*[.,]?(?:e[+-]?\d{1,2})?"
# Number, unit and signs of a cell. Words of the unit are letters and signs without digits.
NUMBER = (
    rf"(?P<open>\( ?)?{ABOUT}(?P<sign>(?:\+|{_MINUS}) ?)?(?P<currency>{_CURRENCY} ?)?"
    rf"(?P<inner_sign>(?:\+|{_MINUS}) ?)?(?P<inner_open>\( ?)?(?P<percent>% ?)?"
    rf"(?P<digits>{_DIGITS})(?P<ordinal>(?:st|nd|rd|th|º|ª)\b)?\+?"
    rf"(?P<unit> ?[^\d\s()\[\]+;:,\-{_DASHES}](?:(?:[^\d()\[\]+;:]*[a-z])?[23]|[^\d()\[\]+;:]*))?"
    rf"(?P<sign_behind> ?{_MINUS})?(?P<close> ?\))?(?P<remark> ?(?:\([^()]*\)|\[[^\[\]]*\])[^\d]*)?"
)
POINT_DIGITS = re.compile(
    r"(?:[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d?(?:,\d{2})+,\d{3}|[1-9]\d{0,2}(?:[ ']\d{3})+|\d+)"
    r"(?:\.\d*)?(?:e[+-]?\d{1,2})?|\.\d+"
)
COMMA_DIGITS = re.compile(
    r"(?:[1-9]\d{0,2}(?:\.\d{3})+|[1-9]\d{0,2}(?:[ ']\d{3})+|\d+)(?:,\d+)?(?:e[+-]?\d{1,2})?|,\d+"
)
# Signs for fractions in decimal digits, and fractions behind a whole number: 2 1/2 cups.
FRACTIONS = {
    sign: f"{unicodedata.numeric(sign):.12g}".removeprefix("0") for sign in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"
}
MIXED = re.compile(
    r"(?P<sign>-)?(?P<whole>\d{1,4}) (?P<top>\d{1,2})/(?P<bottom>\d{1,2})(?P<unit> ?[a-z%'\"].*)?"
)
_TERM = r"(\d+(?:,\d{3})*(?:\.\d+)?)"
TERMS = re.compile(
    rf"([-¥])?(?:{_TERM}[兆조] ?)?(?:{_TERM}[億亿억] ?)?(?:{_TERM}[万萬만] ?)?(\d[\d,]*)?"
    r" ?([円元원])?"
)

# Times, and lengths of time.
_ZONES = (
    "z+0 utc+0 gmt+0 wet+0 cet+1 west+1 bst+1 cest+2 eet+2 eest+3 msk+3 ist+5.5 jst+9 kst+9 "
    "acst+9.5 aest+10 acdt+10.5 aedt+11 nzst+12 nzdt+13 edt-4 est-5 cdt-5 cst-6 mdt-6 mst-7 pdt-7 "
    "pst-8 hst-10"
)
# Seconds that a zone's clocks are ahead.
ZONES = {name: 3600.0 * float(hours) for name, hours in re.findall(r"([a-z]+)([-+\d.]+)", _ZONES)}
CLOCK = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?"
    r"(?: ?(?P<half>[ap])\.? ?m\.?)?(?P<oclock> (?:uhr|uur))?"
    rf"(?: ?(?P<zone>{'|'.join(ZONES)}))?"
    r"(?: ?(?P<offset>[+-]\d{2}(?::?\d{2})?))?(?: [a-z]+(?:/[a-z_]+)+)?"
    r"(?: ?[\x28\[][^\x28\x29\[\]]*[\x29\]])?"
)
LENGTH = re.compile(
    "(?P<sign>[-+\u2212])?"
    r"(?P<a>\d{1,4}):(?P<b>\d{2})(?::(?P<c>\d{2}))?(?:[.,](?P<d>\d{1,6}))?"
)
OFFSET = re.compile(r"[+-](\d{2}):?(\d{2})?")
ISO_DURATION = re.compile(r"p(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?)?")
_GROUP = re.compile(r"\((?:\?P<\w+>|(?!\?))")


def ungrouped(pattern: str) -> str:
    """The expression without groups that are remembered."""
    return _GROUP.sub("(?:", pattern)


# Dates.
_TIME = ungrouped(CLOCK.pattern)
_WEEKDAYS = (
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri "
    "sat sun montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag mo di mi do fr "
    "sa so lundi mardi mercredi jeudi vendredi samedi dimanche lun mar mer jeu ven sam dim lunes "
    "martes miércoles jueves viernes sábado domingo lunedì martedì mercoledì giovedì venerdì "
    "sabato domenica segunda-feira terça-feira quarta-feira quinta-feira sexta-feira "
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag"
).split()
_OF_ASIA = "月火水木金土日天一二三四五六월화수목금토일"
_WEEKDAY = rf"(?:(?:{any_of(_WEEKDAYS)})[.,]?,? )?(?:the )?"
_MONTH = f"({any_of(MONTH_NUMBERS)})"
_DAY = r"(\d{1,2})(?:st|nd|rd|th|er|º|\.)?"
_SURE_YEAR = r"(?:1[5-9]|20)\d\d"
BAR = "\x01"  # between the parts of a date; texts with it are not read
# Dates, and their order, year, month, day and time between bars. The order is "?" where the day may
# be the month, which the column decides; "." where it is so only if no date says otherwise; "w" of
# weeks, which stand for the month.
_DATES = (
    (r"(\d{4})[-/.] ?(\d{1,2})[-/.] ?(\d{1,2})\.?", r"|\1|\2|\3|\4"),
    (r"(\d{1,2})\. ?(\d{1,2})\. ?(\d{4}|'?\d{2})", r".|\3|\2|\1|\4"),
    (r"(\d{4})[- ]?(?:w|kw|cw|week )(\d{1,2})(?:-?([1-7]))?", r"w|\1|\2|\3|\4"),
    (r"(?:w|kw|cw|week)\.? ?(\d{1,2})[ ,/-]{1,2}(\d{4})", r"w|\2|\1||\3"),
    (r"(\d{1,2}) ?/ ?(\d{1,2}) ?/ ?(\d{4}|'?\d{2})", r"?|\3|\2|\1|\4"),
    (r"(\d{1,2})-(\d{1,2})-(\d{4})", r"?|\3|\2|\1|\4"),
    (r"(\d{2})-(\d{2})-(\d{2})", r"?|\3|\2|\1|\4"),
    (r"(\d{4})[-/](\d{1,2})", r"|\1|\2||\3"),
    (r"(\d{4})m(\d{2})", r"|\1|\2||\3"),
    (r"(\d{4}) ?[年년] ?(\d{1,2}) ?[月월](?: ?(\d{1,2}) ?[日일])?", r"|\1|\2|\3|\4"),
    (
        rf"{_DAY}[ /.-]?(?:of |de )?{_MONTH}\.?,?(?:[ /.-]?(?:de |del )?(\d{{4}}|'?\d{{2}}))?",
        r"|\3|\2|\1|\4",
    ),
    (rf"{_MONTH}\.? {_DAY}(?:,? (\d{{4}}|'\d{{2}}))?", r"|\3|\1|\2|\4"),
    (rf"{_MONTH}[-/]{_DAY}[-/](\d{{4}})", r"|\3|\1|\2|\4"),
    (rf"{_MONTH}\.?,?[ -](?:de |of )?(\d{{4}})", r"|\2|\1||\3"),
    (rf"{_MONTH}\.?(?:[-']| ')(\d{{2}})", r"|\2|\1||\3"),
    (rf"(\d{{4}})\.?[ -]{_MONTH}\.?(?:[ -]{_DAY})?", r"|\1|\2|\3|\4"),
    (rf"(\d{{1,2}})/({_SURE_YEAR})", r"|\2|\1||\3"),
)
_DATES_ALONE = (  # not within a sentence
    (f"({'|'.join(MONTHS)})", r"||\1||"),
    (rf"({_SURE_YEAR})s", r"|\1|||"),
    (r"(\d{1,2})\. ?(\d{1,2})\.", r"||\2|\1|\3"),
    (r"(\d{4})(\d{2})(\d{2})t(\d{2})(\d{2})(\d{2})(z?)", r"|\1|\2|\3|\4:\5:\6\7"),
)
_AND_TIME = rf"(?:(?:t| |,? (?:at |um |à )?)({_TIME}))?"
DAY_OF_DIGITS = re.compile(rf"(?P<year>{_SURE_YEAR})(?P<month>\d\d)(?P<day>\d\d)")
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-", strict=True))
RAISED_POWER = re.compile(r".*\de[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹].*")
# Arrows of changes, where a column has both; in Japan ▲ alone is a minus.
UP, DOWN = re.compile("[▲△▴]"), re.compile("[▼▽▾]")
NOT_ZERO = re.compile("[1-9]")
# Letters behind amounts, where a column has both: debits and credits, Soll and Haben.
SIDES = (
    (re.compile(r".*[.,]\d\d ?s"), re.compile(r".*[.,]\d\d ?h")),
    (re.compile(r".*[.,]\d\d d"), re.compile(r".*[.,]\d\d c")),
)

# A cell that begins with other letters is no value.
FIRST_WORD = re.compile(r"[^\W\d_]+")
_OTHER_FIRST = "minus negative dr cr the p pt w kw cw week 午前 上午 오전 午後 下午 오후".split()
FIRST_WORDS = frozenset(
    word[0]
    for name in (*CURRENCIES, *_ABOUTS, *_WEEKDAYS, *MONTH_NUMBERS, *_OTHER_FIRST)
    if (word := FIRST_WORD.match(name))
)
# Other ways to write a cell, each replaced by the usual one before it is read, in this order.
_SPELLINGS = (
    (r"(.*\d) ?[x×·*] ?10([⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2})(.*)", r"\1e\2\3"),
    (  # marks of footnotes
        r"(.*?[\w%.)$€£¥])(?: ?\[[^\[\]]{1,12}\]|[*†‡§¶])+|(.*[\d%)])[⁰¹²³⁴⁵⁶⁷⁸⁹ᵃᵇᶜᵈ]+"
        r"|([^()]*[\d%]) ?[a-z\d]\)|[*†‡] ?(.*)",
        r"\1\2\3\4",
    ),
    ("['\u2018](.*)", r"\1"),
    (
        rf"(?:minus |negative |dr\.? |[△▼▽▾↓] ?{_MINUS}?)(\D?[\d.,].*)|(.*\d) ?dr\.?"
        r"|(.*\d ?%?) ?[▼▽▾↓]",
        r"-\1\2\3",
    ),
    (r"(?:cr\.? |↑ ?)(\D?[\d.,].*)|(.*\d ?%?) ?↑", r"\1\2"),
    (r"(\d[\d.,]*) ?° ?[sw]", r"-\1°"),  # south and west
    (r"(\d[\d.,]*) ?° ?[ne]", r"\1°"),
    (r"(\d[\d.,]*) ?(?:±|\+/-) ?\d[\d.,]*(.*)", r"\1\2"),  # with its error
    (r"(\d[\d.,]* ?[a-z]+)\^([23])", r"\1\2"),
    (r"(\d{1,4}) ?(?:bce?|b\.c\.|v\. ?chr\.?)", r"-\1"),
    (r"(\d{1,4}) ?(?:ad|ce|a\.d\.|n\. ?chr\.?)", r"\1"),
    (rf"(.*\d ?)(mds?|mrd|mio|mln|bn)\.?({_CURRENCY})", r"\1\2 \3"),
    (r"(.*\d) ?t(€|eur|chf)", r"\1 tsd \2"),
    (r"(.*\d) ?([十百千][万萬億])(円|元)", r"\1 \2 \3"),
    (r"(.*\d) mil (?:millones|milhões)(.*)", r"\1 mrd\2"),
    (r"(r\$ ?\d[\d.,]*) mil", r"\1 tsd"),
    (rf"(.*\d),{_MINUS}+( [^\d]*)?", r"\1,00\2"),  # 5,- €
    (rf"(.*\d)\.{_MINUS}+( [^\d]*)?", r"\1.00\2"),
    (r"(.*\d)/-|(.*[a-z%]) ?\+|(.*\d) \+", r"\1\2\3"),
    (r"(.*\d{4}) ?г(?:\.|ода)", r"\1"),
    (r"(.*\d)[時时시] ?(\d{2}) ?[分분](.*)", r"\1:\2\3"),
    (r"(.*\d:\d{2}) ?(\d{2}) ?[秒초]", r"\1:\2"),
    (r"(.*?) ?(?:午前|上午|오전) ?(\d{1,2}:\d{2}.*)", r"\1 \2 am"),
    (r"(.*?) ?(?:午後|下午|오후) ?(\d{1,2}:\d{2}.*)", r"\1 \2 pm"),
    (r" (\d.*)", r"\1"),
    (r"(\d{1,3}:\d{2}) ?(?:h(?:rs?|ours)?|std)\.?", r"\1:00"),
    (rf"([^-{_DASHES}]*\d) ?{_MINUS} ?({_CURRENCY})", r"-\1 \2"),
    (rf"([^-{_DASHES}]*\d ?{_CURRENCY}) ?{_MINUS}", r"-\1"),
    (rf"({_CURRENCY}? ?\( ?[^()]*\d ?)\)( ?[^\d()\[\]]+)", r"\1\2)"),  # (5) €
    (r"(.*\d) ?[x×·*] ?10(?:\^|\*\*)([-+]?\d{1,2})(.*)", r"\1e\2\3"),
    (r"(-?\d+) (\.\d.*)", r"\1\2"),  # 1 ½
    (rf"({_CURRENCY}) ?{_MINUS}{{1,2}}", r"\1 0"),
    (rf"{_MINUS}{{1,2}} ?({_CURRENCY})", r"0 \1"),
    (r"(\d{4}-\d{2}-\d{2}[t ]\d{2})", r"\1:00"),
    (r"(\d{1,2})( ?[ap]\.?m\.?| uhr)", r"\1:00\2"),
    (r"(.*\b\d{1,2})\.(\d{2}) uhr|(.*\D\d{4},? \d{1,2})\.(\d{2})", r"\1\3:\2\4"),
    (r"(.*(?:utc|gmt)) ?\+(\d(?::\d{2})?)", r"\1+0\2"),
    (r"(.*(?:utc|gmt)) ?-(\d(?::\d{2})?)", r"\1-0\2"),
    (r"(\d{1,3}) ?h ?(\d{2})", r"\1:\2:00"),
    (r"(\d+)(?: ?d(?:ays?)?,? \+?|[.-])(\d{1,2}):(\d{2}):(\d{2}(?:\.\d+)?)", r"\1d \2h \3m \4s"),
    (r"(\d+) ?d(?:ays?)?,? (\d{1,2}):(\d{2})", r"\1d \2h \3m"),
    (rf"{_WEEKDAY}([a-z]{{3}}) (\d{{1,2}}) ({_TIME}) (\d{{4}})", r"\1 \2, \4 \3"),
    (r"\[?(\d{2})/([a-z]{3})/(\d{4}):(\d[^\]]*)\]?", r"\1 \2 \3 \4"),
    (  # of cameras and databases
        r"(\d{4})[-:](\d\d)[-:](\d\d)[-_: ](\d\d)[-.:](\d\d)[-.:](\d\d(?:\.\d+)?)",
        r"\1-\2-\3 \4:\5:\6",
    ),
    (r"(.*\D\d{2,4} \d{1,2})\.(\d{2})\.(\d{2}.*)", r"\1:\2:\3"),
    (r"(.*\D\d{4},? (?:à )?\d{1,2}) ?h ?(\d{2})", r"\1:\2"),
    (rf"({_TIME}),? (.*[^\d:].*\d{{2}})", r"\2 \1"),
    (rf"(\d.*[\d日일]) ?\((?:[{_OF_ASIA}]|{any_of(_WEEKDAYS)})\)( .*)?", r"\1\2"),
    (
        rf"(\d.*[\d日일]) (?:(?:星期|周|週)[{_OF_ASIA}]|[{_OF_ASIA}](?:曜日?|요일))",
        r"\1",
    ),
)


# These are compiled when the first cell needs them; processes that read files type no cell.
@functools.cache
def spellings() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Other ways to write a cell, each with what replaces it."""
    return tuple((re.compile(pattern), usual) for pattern, usual in _SPELLINGS)


@functools.cache
def dates() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Dates, each with its order and parts."""
    return tuple(
        (re.compile(f"{_WEEKDAY}(?:{date}){_AND_TIME}"), fields.replace("|", BAR))
        for date, fields in (*_DATES, *_DATES_ALONE)
    )


@functools.cache
def value_in_sentence() -> re.Pattern[str]:
    """A pattern of values within a sentence; each is then read as a cell."""
    return re.compile(
        ungrouped(
            rf"\b(?:{'|'.join(date for date, _ in _DATES)}){_AND_TIME}\b"
            rf"|\b{_TIME}|(?:{_MINUS})?(?:{_CURRENCY} ?)?\b\d+(?:[.,']\d+)*(?:e[+-]?\d{{1,2}})?\b"
            rf"(?: ?(?:{any_of(MULTIPLES)}|[mb])\b)?(?: ?(?:%|[{_SIGNS_OF_CURRENCIES}]))?",
        )
    )
