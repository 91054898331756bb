"""Small tables as people keep them, made at random: invoices, staff, stock, league tables.

Wikipedia's tables, on which everything else is trained, hold few amounts, prices and yes or no.
"""

import datetime
import random
from collections.abc import Callable, Iterator

from mate_tf.datasets.described_tables import DescribedTable
from mate_tf.tables.table import Table

_FEWEST_ROWS, _MOST_ROWS = 4, 14
_FEWEST_COLUMNS = 3
# A line is a kind of table: its rows, then its other columns. "name=kind" is a column; a name has
# several wordings between bars.
_KINDS = """
Item|Product|Article=thing; Price|Unit price|Cost=price; Quantity|Qty|In stock|Stock=count;
  Category|Type|Department=group; Supplier|Vendor|Brand=company; On sale|Available=yesno
Name|Employee|Staff member=person; Department|Team|Division=team; Salary|Annual salary|Pay=pay;
  Age|Years=age; Start date|Hired|Joined=date; City|Office|Location=city; Full time|Manager=yesno
Invoice|Order|Reference=code; Customer|Client|Company=company; Amount|Total|Sum=price;
  Date|Issued|Due date=date; Paid|Sent|Overdue=yesno; Items|Pieces=count
Team|Club=club; Played|Games=count; Won|Wins=count; Lost|Losses=count; Points|Pts=points;
  Coach|Manager=person; City|Home=city
City|Town=city; Country=country; Population|Inhabitants=large; Area|Area (km2)=area;
  Mayor=person; Founded|Year founded=year; Capital|Airport=yesno
Expense|Description|Purpose=expense; Category|Type=group; Amount|Cost|Spent=price; Date|Day=date;
  Paid by|Who=person; Refunded|Approved=yesno
Student|Pupil|Name=person; Subject|Course=subject; Score|Grade|Mark|Points=points; Age=age;
  Absences|Days absent=count; Passed|Graduated=yesno
Trip|Route|Destination=city; Departure|Departs|Date=date; Distance|Distance (km)=distance;
  Fare|Ticket|Price=price; Seats|Passengers=count; Driver|Guide=person; Direct|Booked out=yesno
Book|Title=title; Author|Writer=person; Year|Published=year; Pages=pages; Price|Cost=price;
  Genre|Section=group; Borrowed|Hardcover=yesno
Project|Task=project; Owner|Lead|Assigned to=person; Budget|Cost=large; Hours|Hours spent=count;
  Deadline|Due|Start=date; Status=status; Finished|Urgent=yesno
Month=month; Revenue|Sales|Income=large; Costs|Expenses=large; Visitors|Orders=count;
  Region|Branch=city
Recipe|Dish|Meal=dish; Calories|kcal=pages; Minutes|Cooking time (min)=count; Price|Cost=price;
  Servings|Portions=count; Vegetarian|Vegan=yesno; Course|Type=group
Film|Movie|Title=title; Director|Directed by=person; Year|Released=year; Rating|Score=decimal;
  Minutes|Length (min)|Duration=pages; Country=country; Seen|In colour=yesno
Train|Bus|Flight|Connection=code; To|Destination=city; Departure|Departs|Leaves=time;
  Arrival|Arrives=time; Platform|Gate|Stop=count; Price|Fare=price; Daily|On time=yesno
City|Station|Place=city; Temperature|Temperature (°C)|High=temperature; Rain|Rain (mm)=decimal;
  Wind speed|Wind (km/h)=count; Humidity (%)|Humidity=points; Date|Day=date
Car|Model|Vehicle=model; Price|Cost=large; Top speed|Speed=speed; Weight|Weight (kg)=weight;
  Built|Year=year; Colour=colour; Electric|Sold=yesno; Owner|Seller=person
Phone|Laptop|Device=model; Price|Cost=price; Weight|Weight (g)=weight; Battery (h)|Battery=count;
  Rating|Stars=decimal; Brand|Maker=company; In stock|Waterproof=yesno
Mountain|Peak=peak; Height|Height (m)|Elevation=height; Country=country; First climbed=year;
  Climbers|Deaths=count
Test|Measurement|Sample=sample; Value|Result=decimal; Unit=unit; Lower limit=count;
  Upper limit=pages; Normal|Repeat=yesno; Date|Taken=date
Course|Class|Lesson=subject; Teacher|Lecturer=person; Day=weekday; Start|Begins=time; Room=count;
  Students|Places=count; Full|Online=yesno
Player|Runner|Athlete=person; Country|Nation=country; Goals|Points|Medals=count; Age=age;
  Height|Height (cm)=tall; Team|Club=club; Injured=yesno
House|Flat|Property=street; Rent|Price=large; Rooms=count; Size|Area (m2)=area; Built=year;
  City=city; Garden|Furnished|Sold=yesno
"""
_WORDS = {
    "thing": "stapler,office chair,printer paper,envelope,whiteboard,marker set,coffee machine,"
    "kettle,monitor,keyboard,mouse,headset,webcam,cable,notebook,folder,scissors,tape,calculator,"
    "bookshelf,lamp stand,carpet,hammer,drill,ladder,bucket,garden hose,rake,bicycle pump,tent,"
    "sleeping bag,backpack,water bottle,helmet,rain jacket,towel,soap,toothbrush,blanket,pillow",
    "person": "Anna Berg,Tom Keller,Maria Silva,John Smith,Lena Fischer,Omar Haddad,Wei Chen,"
    "Priya Patel,Lucas Martin,Emma Jones,Noah Wilson,Sofia Rossi,Ivan Petrov,Aisha Khan,Paul Meyer,"
    "Clara Novak,David Lee,Julia Wagner,Peter Olsen,Nina Laurent,Carlos Vega,Hannah Moore,"
    "Yuki Tanaka,Grace Okafor,Leo Braun,Mia Lindberg,Samuel Cohen,Rosa Torres,Ben Carter,"
    "Ella Young",
    "company": "Acme,Globex,Initech,Umbrella Works,Northwind,Contoso,Bluebird Ltd,Green Valley,"
    "Harbour & Sons,Silverline,Baker Brothers,Summit Group,Oakwood,Riverside GmbH,Delta Trade,"
    "Sunrise Foods,Ironclad,Pioneer Inc,Lakeview,Orchard Partners",
    "city": "Berlin,Lyon,Porto,Oslo,Leeds,Boston,Denver,Lima,Quito,Osaka,Pune,Perth,Cork,Ghent,"
    "Malmo,Turin,Seville,Krakow,Graz,Basel,Toronto,Austin,Dublin,Hanoi,Nairobi,Accra,Tampa,Bergen",
    "country": "Germany,France,Portugal,Norway,England,Peru,Japan,India,Australia,Ireland,Belgium,"
    "Sweden,Italy,Spain,Poland,Austria,Canada,Kenya,Ghana,Vietnam",
    "team": "Sales,Marketing,Finance,IT,HR,Support,Legal,Research,Logistics,Design",
    "group": "Office,Travel,Food,Tools,Garden,Clothing,Electronics,Sports,Household,Toys,Books",
    "club": "Rovers,United,Wanderers,Athletic,City Stars,Eagles,Lions,Sharks,Wolves,Falcons,Tigers,"
    "Dynamo,Rangers,Phoenix,Titans,Raptors,Comets,Pirates",
    "expense": "taxi to airport,hotel,team lunch,conference ticket,train to Paris,parking,"
    "printer ink,phone bill,internet,electricity,water,insurance,gym,cinema,haircut,dentist,books,"
    "coffee,birthday gift,repairs,bus pass,museum,pharmacy,shoes",
    "subject": "Maths,Physics,History,Biology,Art,Music,English,Geography,Chemistry",
    "title": "The Long River,Silent Hills,A Winter Garden,Beyond the Bridge,Seven Lamps,"
    "Paper Boats,"
    "The Last Orchard,Northern Lights,City of Glass,Small Wonders,The Clockmaker,Red Sand,"
    "Letters Home,Under Oaks,The Salt Road,Blue Hour,Stone and Sky,The Quiet Sea",
    "project": "website relaunch,new warehouse,customer survey,data migration,app update,"
    "office move,training plan,audit,product launch,security review,payroll switch,trade fair,"
    "solar roof,newsletter,recruiting,fleet renewal",
    "status": "open,done,in progress,blocked,planned",
    "dish": "lentil soup,lasagne,fried rice,greek salad,pumpkin curry,fish tacos,ramen,pancakes,"
    "risotto,chili,couscous,omelette,goulash,falafel,apple pie,paella",
    "model": "Astra,Falcon X,Nova 5,Comet,Pulse,Vega S,Orion,Breeze,Titan 2,Swift,Aero,Mistral,"
    "Zenith,Polar,Ridge,Cobalt,Echo,Lynx",
    "colour": "red,blue,white,black,silver,green",
    "peak": "Grey Horn,Eagle Peak,Mount Alder,Snow Dome,The Needle,Broad Back,Storm Ridge,"
    "Mount Tarn,Old Man,Silver Spire,Raven Crag,Long Fell",
    "sample": "glucose,iron,sodium,potassium,calcium,cholesterol,vitamin D,creatinine,zinc,protein,"
    "haemoglobin,magnesium",
    "unit": "mg/dl,mmol/l,g/l,U/l",
    "weekday": "Monday,Tuesday,Wednesday,Thursday,Friday",
    "street": "12 Mill Lane,3 Park Road,8 Station Street,21 Hill Rise,5 Abbey Close,40 River Walk,"
    "17 Elm Avenue,9 Church Street,2 Harbour View,33 Oak Drive,6 Kings Court,14 Garden Row",
    "month": "January,February,March,April,May,June,July,August,September,October,"
    "November,December",
}
_IN_TURN = ("month",)
_FEW = {
    "team": 4,
    "group": 4,
    "country": 6,
    "status": 4,
    "subject": 4,
    "company": 8,
    "city": 8,
    "unit": 4,
}


def made_tables(number: int, seed: int) -> Iterator[DescribedTable]:
    """Yields tables; the same number and seed give the same."""
    kinds = _KINDS.strip().replace("\n  ", " ").split("\n")
    for index in range(number):
        rng = random.Random(f"{seed}/{index}")
        table = _table(rng.choice(kinds).split("; "), f"made-{seed}-{index}", rng)
        yield DescribedTable(table.table_id, table)


def _table(columns: list[str], name: str, rng: random.Random) -> Table:
    first, *others = columns
    chosen = rng.sample(others, rng.randint(_FEWEST_COLUMNS - 1, len(others)))
    if rng.random() < 0.6:  # as it is listed
        chosen.sort(key=others.index)
    num_rows = rng.randint(_FEWEST_ROWS, _MOST_ROWS)
    header, cells = [], []
    for number, column in enumerate((first, *chosen)):
        names, kind = column.split("=")
        of_column = _cells(kind.strip(" ;"), num_rows, number == 0, rng)
        num_rows = min(num_rows, len(of_column))
        header.append(rng.choice(names.split("|")))
        cells.append(of_column)
    if rng.random() < 0.2:
        header = [name.lower() for name in header]
    return Table(tuple(header), tuple(zip(*(c[:num_rows] for c in cells), strict=True)), name)


def _cells(kind: str, number: int, is_subject: bool, rng: random.Random) -> list[str]:
    if kind in _WORDS:
        words = _WORDS[kind].split(",")
        if kind in _IN_TURN:
            return words[:number]
        if is_subject:
            return rng.sample(words, min(number, len(words)))
        few = rng.sample(words, min(len(words), _FEW.get(kind, len(words)), max(2, number // 2)))
        return [rng.choice(few) for _ in range(number)]
    if kind == "yesno":
        yes, no = rng.choice((("Yes", "No"), ("yes", "no"), ("Yes", "No"), ("Y", "N")))
        return [rng.choice((yes, no)) for _ in range(number)]
    if kind == "code":
        prefix, start = rng.choice(("INV-", "A", "2024-", "#", "R")), rng.randint(1, 900)
        return [f"{prefix}{start + i:03}" for i in range(number)]
    if kind == "date":
        return _dates(number, rng)
    if kind == "time":
        return [f"{rng.randint(6, 22):02}:{rng.randrange(0, 60, 5):02}" for _ in range(number)]
    make = _number_maker(kind, rng)
    return [make() for _ in range(number)]


def _dates(number: int, rng: random.Random) -> list[str]:
    form = rng.choice(("%Y-%m-%d", "%Y-%m-%d", "%d %B %Y", "%B %d, %Y", "%d.%m.%Y", "%d/%m/%Y"))
    begin = datetime.date(rng.randint(1995, 2025), rng.randint(1, 12), 1)
    span = rng.choice((60, 400, 4000))
    days = [rng.randint(0, span) for _ in range(number)]
    days = sorted(days) if rng.random() < 0.5 else days
    return [(begin + datetime.timedelta(day)).strftime(form) for day in days]


def _number_maker(kind: str, rng: random.Random) -> Callable[[], str]:
    """A function that makes the numbers of a column, all written in the same way."""
    low, high = {
        "price": rng.choice(((1, 60), (5, 900), (100, 9000))),
        "pay": (24_000, 98_000),
        "count": rng.choice(((0, 12), (1, 60), (10, 900))),
        "age": (18, 66),
        "points": rng.choice(((0, 30), (10, 100))),
        "large": rng.choice(((1_000, 90_000), (50_000, 9_000_000))),
        "area": (20, 2_000),
        "distance": (15, 1_900),
        "year": (1850, 2023),
        "pages": (80, 900),
        "decimal": rng.choice(((0, 10), (1, 200))),
        "temperature": (-15, 38),
        "speed": (120, 320),
        "weight": (90, 2_400),
        "height": (600, 8_800),
        "tall": (158, 205),
    }[kind]
    if kind == "price":
        sign = rng.choice(("", "", "", "$", "€", "£"))
        cents = rng.random() < 0.7
        return lambda: (
            f"{sign}{rng.uniform(low, high):,.2f}"
            if cents
            else (f"{sign}{rng.randint(low, high):,}")
        )
    if kind == "decimal":
        return lambda: f"{rng.uniform(low, high):.1f}"
    if kind in ("pay", "large", "distance", "area"):
        step = rng.choice((1, 100, 500)) if kind in ("pay", "large") else 1
        before = rng.choice(("", "", "$", "€")) if kind == "pay" else ""
        after = rng.choice(("", " km")) if kind == "distance" else ""
        comma = "," if rng.random() < 0.6 else ""
        return lambda: f"{before}{rng.randint(low, high) // step * step:{comma}}{after}"
    return lambda: str(rng.randint(low, high))
