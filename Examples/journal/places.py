"""The places of the sample journal, in the order of the visits: the one source of its manifests and pictures.

Times are local, with their offset from UTC. Elevations are metres above the sea at the viewpoint, to within a few metres.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    id: str
    created_at: str
    caption: str
    details: str
    image: str
    rating: int
    elevation: float
    tags: tuple
    latitude: float
    longitude: float
    picture_of: str = ""
    """The picture that this one repeats byte for byte, if it is not one of its own."""


PLACES = (
    Place("c71054b9-8c7a-4910-b202-192af0305268", "2019-02-23T16:30:00+08:00", "Shaman Rock, Lake Baikal, Russia",
          "Шаманка stands off the village of Хужир on Olkhon, the largest island in the lake. Baikal is 1,642 metres deep, deeper than any other lake, "
          "and holds about a fifth of the fresh water that lies unfrozen on the earth's surface. In February the ice carries lorries; it is clear enough to show cracks far below the feet.",
          "pictures/shaman-rock.jpg", 5, 456.0, ("lake", "ice", "winter"), 53.2042, 107.3386),
    Place("36841ff0-a9a3-4f27-b622-58338cbc2c0a", "2019-04-08T06:10:00+09:00", "Fushimi Inari, Kyōto, Japan",
          "The shrine 伏見稲荷大社 in the south of 京都 was founded in 711. Thousands of vermilion gates cover the paths up Mount Inari (稲荷山, 233 m).\n"
          "Each gate was given by a person or a firm: the name and the date are painted on the back, so they are read on the way down.",
          "pictures/fushimi-inari.jpg", 5, 62.5, ("shrine", "forest", "京都"), 34.9671, 135.7727),
    Place("73c55b23-e299-4cf9-b43c-bd4708129598", "2019-04-11T05:40:00+09:00", "Lake Kawaguchi and Mount Fuji, Japan",
          "河口湖 is one of the five lakes at the northern foot of 富士山, which is 3,776 metres high and last erupted in 1707. "
          "On a still morning the lake shows a second mountain, upside down: 逆さ富士, \"upside-down Fuji\".",
          "pictures/kawaguchi-2019.png", 5, 832.0, ("volcano", "lake", "sunrise"), 35.5226, 138.7443),
    Place("dfa595f3-2a04-43d2-9f45-34c43e624212", "2019-08-17T05:25:00+07:00", "Mount Bromo, Java, Indonesia",
          "Seen from Penanjakan, on the northern rim of the Tengger caldera, before sunrise. Bromo (2,329 m) steams on the left, the ribbed cone beside it is Batok, "
          "and behind both stands Semeru, at 3,676 metres the highest mountain of Java. It sent up a puff of ash two or three times an hour.",
          "pictures/bromo.jpg", 4, 2770.0, ("volcano", "dawn"), -7.9072, 112.9511),
    Place("693b4178-b3fe-4a05-9bc4-359eb2a0ed1f", "2019-10-05T07:40:00+02:00", "Deadvlei, Namibia",
          "A floor of white clay where the river Tsauchab once ended in pools, until dunes cut it off. The camel thorn trees died some six or seven hundred years ago; "
          "the air is too dry for them to rot. The dune behind them is called \"Big Daddy\" and rises more than 300 metres.",
          "pictures/deadvlei.png", 5, 550.0, ("desert", "dunes", "trees"), -24.7592, 15.2928),
    Place("1eb0f689-4e20-45a1-a9b3-fbc913b556ca", "2020-01-28T18:55:00-04:00", "Salar de Uyuni, Bolivia",
          "More than 10,000 square kilometres of salt, so level that satellites calibrate their altimeters over it. In the wet season a few centimetres of water stand on the crust and mirror the sky.\n"
          "\n"
          "Bring sunglasses, rubber boots and, for the car, somebody who has driven here before: brine eats brakes.",
          "pictures/uyuni.jpg", 5, 3656.0, ("salt flat", "sunset", "altiplano"), -20.1338, -67.4891),
    Place("9b7fb760-82b9-4a29-8801-d46293614c9e", "2020-02-06T12:10:00-03:00", "Perito Moreno Glacier, Argentina",
          "The front is five kilometres wide and stands about 70 metres above the water of Lago Argentino. "
          "Every few years the ice reaches the Magallanes peninsula, dams the southern arm of the lake, and the dam breaks. "
          "\"Cuidado con el ruido\", said the ranger: the crack of a fall arrives after the fall.",
          "pictures/perito-moreno.jpg", 4, 205.0, ("glacier", "ice", "lake"), -50.4690, -73.0290),
    Place("63675431-684c-431c-b966-df7590fb70ee", "2021-09-08T21:05:00+02:00", "Stromboli, Italy",
          "From a boat off the Sciara del Fuoco, the scar down which the lava runs to the sea. The volcano (924 m) has thrown up glowing rock several times an hour for at least two thousand years "
          "and is called \"the lighthouse of the Mediterranean\". 🌋 The island's old name, Στρογγύλη, means \"round\".",
          "pictures/stromboli.jpg", 5, 2.0, ("volcano", "night", "sea"), 38.8060, 15.1960),
    Place("a1f616e6-3caf-4a76-9d0b-af00c084e626", "2021-09-28T18:50:00+03:00", "Oía, Santorini, Greece",
          "Οία sits on the northern tip of Σαντορίνη, on the rim of a caldera that took its present shape in an eruption about 3,600 years ago. "
          "Many of the white houses are caves dug into the ash, with a vaulted room built on in front. Half the island comes to watch the sun go down, then leaves by the same lane.",
          "pictures/oia.png", 3, 95.0, ("sunset", "sea", "village"), 36.4618, 25.3753),
    Place("27f63478-0ca0-41f7-8db0-24b1ff5430b6", "2022-03-02T22:40:00+01:00", "Abisko, Sweden",
          "The U-shaped valley on the skyline is Čuonjávággi in Northern Sámi and Lapporten in Swedish: a trough that a glacier carved. "
          "The mountains to the west keep the clouds off, so Abisko has more clear nights than most places this far north. New moon, −19 °C, and the aurora overhead until midnight.",
          "pictures/abisko.webp", 5, 385.0, ("aurora", "night", "winter", "Sápmi"), 68.3583, 18.7839),
    Place("beaf37ad-0e6a-4a93-8ccc-7edb0f081a5e", "2022-06-14T16:40:00Z", "Skógafoss, Iceland",
          "The river Skógá drops 60 metres over a cliff that used to be the coast; the sea is now five kilometres away. The fall is 25 metres wide, and on a sunny day there is a rainbow at its foot, often two.",
          "pictures/skogafoss.jpg", 5, 28.0, ("waterfall", "rainbow"), 63.5321, -19.5114),
    Place("0671fc61-8ee2-4859-ac34-fd6753aed47d", "2022-06-15T07:30:00Z", "Reynisfjara, Iceland",
          "Black sand, a cave between basalt columns (Hálsanefshellir), and the stacks of Reynisdrangar offshore, by legend trolls that the daylight caught. "
          "The warning sign is meant: single waves run much further up the beach than the rest.\nStay above the pebbles.",
          "pictures/reynisfjara.jpg", 4, 3.0, ("coast", "basalt", "overcast"), 63.4042, -19.0447),
    Place("3ce5d45a-d8de-4d69-83ea-daf2a94e898d", "2022-07-01T00:20:00+02:00", "Reine, Lofoten, Norway",
          "Twenty past midnight, and the sun is up: in Reine it does not set from the end of May to the middle of July. The red cabins on stilts are \"rorbuer\", built for the fishermen who came for the winter cod. "
          "Some ten kilometres on, the road ends in a village called Å.",
          "pictures/reine.jpg", 5, 4.0, ("fjord", "midnight sun", "fishing"), 67.9324, 13.0887),
    Place("132479ad-2d05-406d-b0b1-27f44bfccc15", "2022-10-16T09:45:00-07:00", "Lady Bird Johnson Grove, California, United States",
          "Coast redwoods, Sequoia sempervirens, grow taller than any other tree: the tallest one known, elsewhere in the same park, is over 115 metres. "
          "In summer they drink fog that drips from their own needles. The path through the grove is a loop of about two kilometres, soft with bark.",
          "pictures/redwoods.jpg", 4, 366.0, ("forest", "fog"), 41.3034, -124.0179),
    Place("013e2fbf-e0c3-4a41-af2f-0d8e9f83eee9", "2022-10-25T18:25:00-04:00", "Brooklyn Bridge, New York, United States",
          "Opened on 24 May 1883, with a main span of 486 metres, then the longest in the world. Emily Warren Roebling carried her husband's instructions to the site for years and was the first to cross it, with a rooster on her lap. "
          "The tower behind it is One World Trade Center: 1,776 feet, or 541 metres.",
          "pictures/brooklyn-bridge.jpg", 4, 2.0, ("city", "bridge", "dusk"), 40.7043, -73.9907),
    Place("751a0645-352d-4c5c-81c1-35ef5289f6b1", "2023-05-14T17:55:00+09:30", "Uluru, Australia",
          "Uluṟu is sacred to the Aṉangu, who own the land. The sandstone rises 348 metres above the plain, is 9.4 kilometres round, and goes on underground. "
          "Iron in the rock has rusted; that is the red. Nobody climbs it: the path was closed for good in October 2019.",
          "pictures/uluru.jpg", 5, 505.0, ("desert", "rock", "sunset"), -25.3320, 131.0010),
    Place("59f7d8c0-9bd6-4d29-99fc-11f1f2dc82c9", "2023-07-12T07:05:00+03:00", "Kilimanjaro from Amboseli, Kenya",
          "The mountain is in Tanzania, its best view is from Kenya. Kibo, the broad summit, reaches 5,895 metres; Mawenzi, on the left, 5,149. "
          "By eight o'clock the clouds had it. The elephants walk out of the trees at dawn to the swamps, which are fed by water from the mountain.",
          "pictures/amboseli.jpg", 5, 1145.0, ("savanna", "volcano", "elephants"), -2.6527, 37.2606),
    Place("bd10bddd-26f5-4a19-bb4e-c851f340ba4e", "2023-07-20T09:10:00+02:00", "Victoria Falls, Zambia",
          "Mosi-oa-Tunya, \"the smoke that thunders\": the Zambezi, 1,708 metres wide here, falls up to 108 metres into a slot across its bed. "
          "The spray can be seen from some 40 kilometres away and keeps a small rainforest wet.\nNote: wrap the camera, not yourself.",
          "pictures/victoria-falls.jpg", 5, 890.0, ("waterfall", "rainbow", "Zambezi"), -17.9259, 25.8584),
    Place("ca5726cf-8438-41b0-b42f-33eac3b3b01f", "2023-08-02T17:35:00+03:00", "Avenue of the Baobabs, Madagascar",
          "Along the earth road from Morondava north to Belon'i Tsiribihina. Adansonia grandidieri grows only on this island, up to 30 metres tall; its Malagasy name, \"renala\", means \"mother of the forest\". "
          "The forest around these was cleared for fields, and the baobabs were left.",
          "pictures/baobabs.jpg", 5, 40.0, ("trees", "sunset", "road"), -20.2508, 44.4194),
    Place("8e60a9db-021b-4c31-823c-e6009291088c", "2023-11-14T06:50:00+05:30", "Taj Mahal, Agra, India",
          "ताज महल (in Urdu تاج محل), the tomb of Mumtaz Mahal and of Shah Jahan, who had it built for her from 1632. The dome tops out at 73 metres. "
          "The four minarets lean outwards a little: if one fell, it would fall away from the tomb.",
          "pictures/taj-mahal.jpg", 4, 171.0, ("monument", "dawn"), 27.1738, 78.0421),
    Place("ada5390e-061d-4bcf-ab5b-5605f9dd9f74", "2024-04-07T03:50:00+03:00", "Wadi Rum, Jordan",
          "وادي رم is a valley of sandstone and granite; on its rocks are thousands of drawings and inscriptions, many in Thamudic script. "
          "Two nights before the new moon, an hour before the first light: the Milky Way stood over the camp, and somebody had kept the fire going.",
          "pictures/wadi-rum.jpg", 5, 952.5, ("desert", "night", "stars"), 29.5469, 35.4101),
    Place("57e6eb35-4f5c-49b4-aa69-04432564c521", "2024-04-10T11:30:00+03:00", "Dead Sea, Jordan",
          "The lowest shore on land, and it is sinking: the water, البحر الميت in Arabic and ים המלח in Hebrew, falls by about a metre a year. It is nearly ten times as salty as the ocean, so one floats, reads, and must not splash. "
          "Salt grows in white lumps on whatever lies in the shallows.",
          "pictures/dead-sea.jpg", 3, -438.5, ("lake", "salt", "below sea level"), 31.7090, 35.5870),
    Place("890e9ef8-dfaa-47f3-9398-5a5ef1dd09f5", "2024-05-17T05:45:00+03:00", "Göreme, Cappadocia, Türkiye",
          "The cones are soft volcanic tuff; where a block of harder rock lay on top, it kept the rain off and a pillar remained. In Turkish they are \"peri bacası\", fairy chimneys. "
          "People hollowed them out as houses, dovecotes and churches. At sunrise, if the wind allows, more than a hundred balloons go up.",
          "pictures/goreme.jpg", 5, 1130.0, ("balloons", "sunrise", "rock"), 38.6431, 34.8289),
    Place("5fd93458-7638-4861-b86e-cf6e0bd4b914", "2024-10-18T08:20:00+08:00", "Zhangjiajie, Hunan, China",
          "张家界 has more than three thousand pillars of quartz sandstone, some over 200 metres tall, split by water, ice and roots. "
          "One of them, 南天一柱, the \"southern pillar of heaven\", was given a second name after a film. The lift up the cliff, 百龙天梯, takes about a minute and a half for 326 metres; the stairs take the morning.",
          "pictures/zhangjiajie.webp", 4, 1074.0, ("forest", "rock", "mist"), 29.3465, 110.4393),
    Place("6b18ff50-6146-4953-8c59-e87dbb7098a6", "2024-10-24T18:20:00+08:00", "Victoria Peak, Hong Kong",
          "香港 from 太平山, half an hour after sunset. The crossed lines are the Bank of China Tower (中銀大廈), the tall one with the crown is IFC 2: 412 metres, a little higher than where we stood.\n"
          "The Peak Tram has gone up here since 1888.",
          "pictures/hong-kong.webp", 4, 396.0, ("city", "night", "harbour"), 22.2710, 114.1500),
    Place("08ad8bd3-fc72-4209-a039-7bf5d2a20534", "2024-11-02T06:05:00+09:00", "Lake Kawaguchi again, Japan",
          "Five years on, and nothing but rain and cloud from six until noon. 富士山 did not show itself, so this page keeps the picture of the first visit, cherry blossom and all. "
          "The noodles, ほうとう with pumpkin, were as good as then.",
          "pictures/kawaguchi-2024.png", 1, 832.0, ("volcano", "lake", "rain"), 35.5226, 138.7443, "kawaguchi-2019"),
    Place("2ef28200-7694-445b-9029-4297991bc084", "2025-01-16T15:40:00-03:00", "Neko Harbour, Antarctica",
          "An inlet of Andvord Bay, called after the Neko, a floating whaling factory that worked these waters early in the twentieth century. "
          "Gentoo penguins nest on the slope above the landing. The glacier opposite calves without warning, so nobody lingers on the beach: the wave comes a minute later.",
          "pictures/neko-harbour.jpg", 5, 6.0, ("ice", "penguins", "sea"), -64.8400, -62.5333),
    Place("26799b49-285e-437e-915a-995cfdeecdf4", "2025-02-05T08:05:00-05:00", "Ahu Tongariki, Rapa Nui, Chile",
          "Fifteen moai on the largest platform of the island. They were thrown down long ago, a tsunami in 1960 swept them inland, and in the 1990s a crane from Japan set them up again. "
          "The heaviest weighs 86 tonnes; one wears its \"pukao\", a topknot of red scoria.",
          "pictures/tongariki.png", 5, 12.0, ("statues", "sunrise", "coast"), -27.1258, -109.2769),
    Place("ee8077c7-a471-436a-bf63-0ad94579ec53", "2025-06-19T10:20:00-10:00", "Bora Bora, French Polynesia",
          "What is left of an old volcano: the twin peaks of Otemanu (727 m) and Pahia, a lagoon, and a ring of low islets, the motu, on the reef. "
          "There is one gap in the reef for ships, Te-ava-nui, on the western side. The water has at least five blues.",
          "pictures/bora-bora.jpg", 4, 1.5, ("lagoon", "island", "reef"), -16.5130, -151.7075),
    Place("834a5b6e-369b-4f3c-8bc6-a68a31a6e4c5", "2025-09-19T07:35:00-06:00", "Moraine Lake, Alberta, Canada",
          "From the rock pile at the foot of the lake, in the valley of the ten peaks. The colour is rock flour, ground by glaciers and fine enough to hang in the water. "
          "The view was on the back of the twenty-dollar note from 1969 on, hence \"the twenty-dollar view\".",
          "pictures/moraine-lake.jpg", 5, 1887.5, ("lake", "mountains", "morning"), 51.3270, -116.1815),
    Place("c0786cba-1570-42b0-bcad-2566e8b07c83", "2025-11-05T16:45:00+05:45", "Kala Patthar, Nepal",
          "काला पत्थर means \"black stone\", and that is what it is: a dark heap above Gorak Shep with the best view of the highest mountain. "
          "Everest, सगरमाथा in Nepali and ཇོ་མོ་གླང་མ in Tibetan, is 8,848.86 metres by the survey of 2020. It keeps the sun longest; Nuptse only looks taller, because it is nearer.",
          "pictures/kala-patthar.jpg", 5, 5644.5, ("mountains", "sunset", "Himalaya"), 27.9957, 86.8285),
    Place("0a99d895-b094-437a-8261-5663d41f006f", "2026-03-28T07:10:00+07:00", "Hạ Long Bay, Vietnam",
          "Vịnh Hạ Long, \"where the dragon comes down\": nearly two thousand islands of limestone that rain, and then the sea, cut out of a plateau. "
          "Fog until eight, then a junk with its sails up, one engine running underneath and nobody admitting to it.",
          "pictures/ha-long.jpg", 4, 1.0, ("karst", "sea", "mist"), 20.8900, 107.0900),
)
