"""Units in families, so that 800 MB is less than 1.2 GB, and kilograms are not added to metres.

A unit's factor and offset give a number in the base unit of its family. A unit may be of several
families: "m" is a metre, a minute beside hours and a month beside years.
"""

import functools
import re
from collections.abc import Collection
from typing import NamedTuple

# Each family: names of a unit, and how many base units it is; names are in lower case, except where
# a small letter is a thousandth and a capital one a million.
_FAMILIES = {
    "size": "b byte bytes 1; bit bits 0.125; kbit 125; mbit 125e3; gbit 125e6; "
    "kb kilobyte kilobytes 1e3; "
    "mb megabyte megabytes 1e6; gb gigabyte gigabytes 1e9; tb terabyte terabytes 1e12; pb 1e15; "
    "kib 1024; mib 1048576; gib 1073741824; tib 1099511627776; pib 1125899906842624",
    "mass": "g gram grams gr 1; mg 1e-3; µg mcg ug 1e-6; "
    "kg kgs kilo kilos kilogram kilograms 1e3; t ton tons tonne tonnes 1e6; "
    "lb lbs pound pounds 453.59237; oz ounce ounces 28.349523125; st stone 6350.29318",
    "length": "m metre metres meter meters 1; nm 1e-9; µm um 1e-6; mm 1e-3; cm 1e-2; dm 0.1; "
    'km kms kilometre kilometres kilometer kilometers 1e3; in inch inches " 0.0254; '
    "ft feet foot ' 0.3048; yd yds yard yards 0.9144; mi mile miles 1609.344; nmi 1852",
    "area": "m2 m² sqm sq|m 1; cm2 cm² 1e-4; km2 km² sq|km 1e6; ha hectare hectares 1e4; "
    "acre acres ac 4046.8564224; sq|ft sqft ft2 ft² 0.09290304; "
    "sq|mi sq|miles mi2 mi² 2589988.110336",
    "volume": "l litre litres liter liters 1; ml 1e-3; µl ul 1e-6; cl 1e-2; dl 0.1; hl 100; "
    "m3 m³ 1e3; cm3 cm³ cc 1e-3; gal gallon gallons 3.785411784; qt quart quarts 0.946352946; "
    "pint pints pt 0.473176473; cup cups 0.2365882365; tbsp 0.01478676478125; tsp 0.00492892159375",
    "time": "s sec secs sec. second seconds sek sek. sekunden secondes 1; ms msec 1e-3; "
    "µs us 1e-6; ns 1e-9; m min mins min. minute minutes minuten 60; "
    "h hr hrs hour hours std std. stunde stunden heures 3600; d day days tag tage jours 86400; "
    "wk wks week weeks 604800",
    "age": "d day days 86400; week weeks wk wks w 604800; "
    "month months mo mos mth mths m 2629800; year years yr yrs y 31557600",
    "power": "w watt watts 1; mW 1e-3; kw 1e3; mw 1e6; gw 1e9; tw 1e12; hp 745.69987158227022; "
    "ps 735.49875",
    "energy": "j 1; kj 1e3; mj 1e6; gj 1e9; wh 3600; kwh 3.6e6; mwh 3.6e9; gwh 3.6e12; "
    "twh 3.6e15; cal 4.184; kcal 4184; ev 1.602176634e-19; kev 1.602176634e-16; "
    "mev 1.602176634e-13; gev 1.602176634e-10",
    "rate": "bps bit/s 1; kbps kbit/s 1e3; mbps mbit/s 1e6; gbps gbit/s 1e9; kb/s 8e3; mb/s 8e6; "
    "gb/s 8e9",
    "frequency": "hz 1; khz 1e3; mhz 1e6; ghz 1e9; rpm 0.016666666666666666",
    "speed": "m/s 1; km/h kmh kph 0.2777777777777778; mph 0.44704; kn knots 0.5144444444444445",
    "pressure": "pa 1; hpa mbar 100; kpa 1e3; mpa 1e6; bar 1e5; psi 6894.757293168; atm 101325",
    "voltage": "v volt volts 1; mv 1e-3; kv 1e3",
    "current": "a 1; ma 1e-3",
    "charge": "ah 1; mah 1e-3",
    "temperature": "°c c 1 273.15; °f f 0.5555555555555556 255.3722222222222; k °k 1",
    "share": "% 1; ‰ 0.1",
    "angle": "° 1",
    "pixels": "px pixel pixels 1",
    "times": "x 1",
}


class Unit(NamedTuple):
    """A number times `factor`, plus `offset`, is in the base unit of the family."""

    factor: float
    offset: float = 0.0


def _units(text: str) -> dict[str, Unit]:
    entries = re.findall(r"([^;]+?)((?: [\d.e-]+)+)(?:;|$)", text)
    return {
        name.replace("|", " "): Unit(*map(float, numbers.split()))
        for names, numbers in entries
        for name in names.split()
    }


FAMILIES = {family: _units(text) for family, text in _FAMILIES.items()}
UNITS = frozenset(name for units in FAMILIES.values() for name in units)
# Those that may follow a number without a blank; 5c and 6a are codes.
GLUED_UNITS = UNITS - set("acdfjkv'\"")
SECONDS = {name: unit.factor for name, unit in FAMILIES["time"].items()}


def family_of(names: Collection[str]) -> dict[str, Unit]:
    """The units of the first family that has all of the names; {} if there is none."""
    return next((it for it in FAMILIES.values() if names and it.keys() >= set(names)), {})


@functools.cache
def usual_name(name: str) -> str:
    """The first name of a unit: "lb" of "lbs" and "pounds"."""
    family = family_of([name])
    return next(other for other, unit in family.items() if unit == family[name])


def in_unit(number: float, name: str, other: str) -> float:
    """A number of one unit in another one, to 12 digits; as it is if no family has both."""
    family = family_of([name, other])
    if not family or family[name] == family[other]:
        return number
    of, to = family[name], family[other]
    return float(f"{(number * of.factor + of.offset - to.offset) / to.factor:.12g}")
