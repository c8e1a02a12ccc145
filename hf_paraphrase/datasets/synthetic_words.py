"""The words of `synthetic_questions`; `synthetic_grammar` has the sentences."""

from __future__ import annotations

__all__ = ["PHRASES", "SLOTS"]


def _words(text: str) -> list[str]:
    return [" ".join(word.split()) for word in text.split(",")]


PHRASES = {
    "how can I": "how can I|how do I|how do you|how does one|how should I|how could I",
    "tell me": "can you tell me|could you tell me|do you know|does anyone know|could anyone tell me",
    "where can I": "where can I|where could I|where can you|where can one|where do you",
    "what is": "what is|what's",
    "a good": "a good|a great|the best",
    "some good": "some good|some great|the best",
    "fastest": "fastest|quickest",
    "quickly": "quickly|fast|rapidly|in a short time",
    "easiest": "easiest|simplest|best",
    "begin": "begin|start|get started with",
    "recommend": "recommend|suggest",
    "buy": "buy|get|purchase",
    "safe": "safe|okay|all right",
    "hard": "hard|difficult",
    "a cheap": "a cheap|an inexpensive|an affordable",
    "cheap": "cheap|inexpensive|affordable",
    "fix": "fix|repair",
}

LANGUAGES = _words(
    """Spanish, French, German, Italian, Portuguese, Japanese, Korean, Mandarin, Arabic, Russian, Dutch, Swedish,
    Greek, Turkish, Hindi, Polish, Hebrew, Swahili, Latin, Norwegian, Danish, Finnish, Vietnamese, Thai, Czech,
    Hungarian, Welsh, Persian, Ukrainian, Icelandic"""
)
PROGRAMMING = _words(
    """Python, Java, Rust, Haskell, JavaScript, TypeScript, Ruby, Scala, Kotlin, Julia, SQL, Fortran, Perl, Erlang,
    Prolog, Lisp"""
)
SCIENCES = _words(
    """algebra, calculus, geometry, statistics, chemistry, physics, biology, astronomy, geology, philosophy,
    psychology, linguistics, accounting, economics, anatomy, machine learning, web design, world history, sign
    language, graphic design, computer science, music theory"""
)
INSTRUMENTS = _words(
    """guitar, piano, violin, cello, flute, clarinet, trumpet, saxophone, harp, banjo, accordion, harmonica, trombone,
    mandolin, ukulele, oboe"""
)
SPORTS = _words(
    """football|soccer, tennis, basketball, volleyball, rugby, cricket, baseball, badminton, golf, hockey, squash,
    handball, lacrosse, water polo, table tennis|ping-pong, curling"""
)

SLOTS = {
    "language": LANGUAGES,
    "programming": PROGRAMMING,
    "sport": SPORTS,
    "subject": [*LANGUAGES, *PROGRAMMING, *SCIENCES],
    "skill": [
        *(f"play the {instrument}" for instrument in INSTRUMENTS),
        *_words(
            """swim, juggle, ski, surf, sing, knit, sew, draw, meditate, whistle, play chess, play poker, dance the
            tango, paint portraits, write poetry, write novels, take photographs, make pottery, ride a bicycle|ride
            a bike, ride a horse, drive a car, sail a boat, fly a kite, read music, type with ten fingers, speak in
            public, bake bread, brew beer, make cheese, do a handstand, do magic tricks, solve crosswords, climb
            rocks, throw a frisbee, ice-skate, snowboard, carve wood, arrange flowers, tie knots, fold paper cranes"""
        ),
    ],
    "city": _words(
        """Paris, London, Berlin, Madrid, Rome, Vienna, Prague, Lisbon, Dublin, Oslo, Stockholm, Helsinki, Copenhagen,
        Amsterdam, Brussels, Athens, Istanbul, Cairo, Nairobi, Lagos, Tokyo, Kyoto, Seoul, Beijing, Shanghai,
        Bangkok, Hanoi, Singapore, Mumbai, Delhi, Sydney, Melbourne, Auckland, Toronto, Vancouver, Montreal,
        Chicago, Boston, Seattle, Denver, San Francisco, New Orleans, Havana, Lima, Buenos Aires, Rio de Janeiro,
        Barcelona, Munich, Edinburgh, Florence"""
    ),
    "country": _words(
        """France, Germany, Spain, Italy, Portugal, Greece, Norway, Sweden, Finland, Denmark, Poland, Hungary, Austria,
        Switzerland, Belgium, Ireland, Iceland, Turkey, Egypt, Morocco, Kenya, Ghana, Ethiopia, South Africa, India,
        Nepal, China, Japan, Vietnam, Thailand, Indonesia, Malaysia, Australia, New Zealand, Canada, Mexico, Brazil,
        Argentina, Chile, Peru, Colombia, Cuba, Jordan, Israel"""
    ),
    "month": _words(
        "January, February, March, April, May, June, July, August, September, October, November, December"
    ),
    "transport": _words("train, bus|coach, car, bicycle|bike, plane|air"),
    "landmark": _words(
        """the Eiffel Tower, the Great Wall of China, the Taj Mahal, the Colosseum, the Statue of Liberty, Machu
        Picchu, the Sydney Opera House, Big Ben, the Brandenburg Gate, the Golden Gate Bridge, the Louvre,
        Stonehenge, the Acropolis, Angkor Wat, the Leaning Tower of Pisa, the Empire State Building, Notre-Dame,
        Mount Rushmore, the Alhambra, the Sagrada Familia, the Tower of London, the Blue Mosque, the Great Pyramid,
        Petra"""
    ),
    "dish": _words(
        """pancakes, scrambled eggs, tomato soup, onion soup, fried rice, apple pie, cheesecake, lasagna, pizza, sushi,
        risotto, paella, hummus, guacamole, chicken curry, beef stew, mashed potatoes, banana bread, garlic bread,
        chocolate cake, carrot cake, waffles, dumplings, meatballs, falafel, couscous, gazpacho, ratatouille,
        tiramisu, crepes, potato salad, Greek salad, vegetable soup, spaghetti, noodles, kimchi, tacos, burritos,
        ice cream, peanut butter, strawberry jam, yogurt, brownies, muffins, bagels"""
    ),
    "ingredient": _words("eggs, butter, milk, flour, sugar, cream, honey, oil, cheese, salt, garlic, onions, pepper"),
    "food": _words(
        """avocados, bananas, mushrooms, eggs, cheese, fresh herbs, strawberries, tomatoes, potatoes, bread, carrots,
        fish, leftover rice, coffee, honey, spinach, onions, garlic, apples, lemons, almonds, chocolate, chicken,
        broccoli, grapes, cucumbers, walnuts, tofu, oats, lentils"""
    ),
    "plant": _words(
        """tomatoes, roses, basil, mint, sunflowers, potatoes, carrots, strawberries, lettuce, tulips, orchids,
        lavender, garlic, cucumbers, pumpkins, spinach, peppers, beans, blueberries, ferns, parsley, rosemary,
        lemons"""
    ),
    "animal": _words(
        """cat, dog, owl, elephant, tiger, lion, wolf, fox, bear, rabbit, horse, goat, penguin, dolphin, whale, shark,
        octopus, eagle, parrot, crow, snake, crocodile, turtle, frog, spider, bee, butterfly, ant, bat, mouse,
        squirrel, hedgehog, giraffe, zebra, kangaroo, koala, camel, monkey, gorilla, otter, seal, ostrich, flamingo,
        lizard, snail, donkey, deer, sheep, goose, beaver"""
    ),
    "pet": _words(
        "puppy, kitten, parrot, hamster, rabbit, goldfish, guinea pig, tortoise, pony, cockatiel, ferret, canary"
    ),
    "profession": _words(
        """nurse, doctor, dentist, teacher, engineer, architect, lawyer, pilot, chef, baker, carpenter, plumber,
        electrician, farmer, journalist, translator, librarian, photographer, actor, firefighter, police officer,
        accountant, economist, psychologist, surgeon, pharmacist, veterinarian|vet, biologist, astronaut, judge,
        diplomat, web developer, data scientist, game designer, graphic designer, interior designer, truck driver,
        flight attendant, tour guide, social worker, music producer, film director, real estate agent, personal
        trainer"""
    ),
    "concept": _words(
        """gravity, inflation, photosynthesis, evolution, electricity, democracy, globalization, artificial
        intelligence, natural selection, quantum computing, nuclear fusion, climate change, blockchain, dark matter,
        osmosis, magnetism, radioactivity, cryptography, herd immunity, supply and demand, compound interest, game
        theory, meditation, mindfulness, probability, relativity, cloud computing, genetic engineering,
        biodiversity, plate tectonics, karma, capitalism, socialism, deep learning, open source software, net
        neutrality, renewable energy, the greenhouse effect, the water cycle, the placebo effect, the stock market"""
    ),
    "invention": _words(
        """the telephone, the printing press, the light bulb, the steam engine, the bicycle, the camera, the
        microscope, the telescope, the compass, the airplane, the computer, the internet, the piano, the zipper, the
        refrigerator, the microwave oven, the battery, the thermometer, the typewriter, the umbrella, the ballpoint
        pen, the parachute, the submarine, the sewing machine, the barometer, the windmill, the elevator, the vacuum
        cleaner, the metronome, the lightning rod"""
    ),
    "phenomenon": _words(
        """rainbows, earthquakes, hurricanes, thunderstorms, avalanches, tornadoes, tsunamis, wildfires, landslides,
        floods, heat waves, blizzards, hailstorms, sandstorms, droughts, volcanic eruptions"""
    ),
    "ailment": _words(
        """a cold, the flu, a headache, a sore throat, back pain, insomnia, a fever, hay fever, a toothache, hiccups, a
        stomach ache, dry skin, acne, heartburn, motion sickness, a nosebleed, a sunburn, muscle cramps, anxiety, a
        migraine, a stiff neck, dandruff, jet lag, food poisoning, tired eyes, a cough"""
    ),
    "gadget": _words(
        """washing machine, laptop, bicycle|bike, dishwasher, camera, phone|telephone, vacuum cleaner, coffee machine,
        printer, television|TV, tablet, microwave oven, refrigerator|fridge, lawn mower, sewing machine, toaster,
        radio, electric guitar, keyboard, air conditioner, hair dryer, drill, heater, tent, umbrella, backpack,
        wristwatch, blender, oven, bed frame"""
    ),
    "stain": _words("red wine, coffee, grass, ink, blood, chocolate, candle wax, tomato sauce, rust, paint, oil, mud"),
    "surface": _words(
        """carpet, white shirt, wooden table, leather sofa|leather couch, pair of jeans, wool sweater, mattress,
        tablecloth, silk dress, car seat, concrete floor, backpack"""
    ),
    "document": _words(
        """passport, driving licence|driver's license, work visa, student visa, residence permit, library card, fishing
        licence|fishing license, bank account, tax number, tourist visa"""
    ),
    "currency": _words(
        """US dollars, euros, British pounds, Japanese yen, Swiss francs, Indian rupees, Canadian dollars, Mexican
        pesos, Brazilian reals, Polish zlotys, Turkish liras, Korean won, Danish kroner, Thai baht"""
    ),
    "event": _words(
        """the French Revolution, the First World War|World War I, the Second World War|World War II, the Cold War, the
        Russian Revolution, the American Civil War, the Industrial Revolution, the Great Depression, the Crimean
        War, the Boer War, the Korean War, the Vietnam War, the Spanish Civil War, the Hundred Years' War, the Black
        Death, the Thirty Years' War"""
    ),
    "genre": _words(
        """science fiction novels, detective stories, historical novels, fantasy books, horror movies|horror films,
        romantic comedies, documentaries, nature documentaries, jazz albums, board games, computer games, podcasts,
        poetry collections, cookbooks, biographies, travel books, animated movies|animated films, war movies|war
        films, comic books, short stories"""
    ),
    "audience": _words(
        """beginners, children|kids, teenagers|teens, adults, students, older people|seniors, busy parents, families,
        couples"""
    ),
    "visitor": _words(
        "children|kids, teenagers|teens, students, older people|seniors, families, couples, art lovers, history lovers"
    ),
    "occasion": _words("Christmas, Easter, Hanukkah, Valentine's Day, Mother's Day, Diwali, graduation, retirement"),
    "greeting": _words(
        """hello, thank you, good morning, good night, please, excuse me, I love you, happy birthday, welcome, goodbye,
        see you tomorrow, congratulations, good luck, sorry"""
    ),
    "program": _words(
        """website, computer game, phone app, web server, compiler, chat bot, text editor, search engine, music player,
        spreadsheet program"""
    ),
    "learner": _words(
        "beginner|novice, child|kid, teenager|teen, adult, busy parent, older person|senior, student, shy person"
    ),
    "holiday": _words(
        """Christmas, Easter, Halloween, Thanksgiving, Diwali, Hanukkah, Ramadan, the Lunar New Year, Valentine's Day,
        Mother's Day, New Year's Eve"""
    ),
    "relative": _words(
        """mother|mom, father|dad, sister, brother, grandmother|grandma, grandfather|grandpa, best friend, wife,
        husband, boss, neighbor, teacher, daughter, son"""
    ),
    "hobby": _words(
        """gardening, photography, yoga, running, cycling, hiking, swimming, painting, fishing, bird watching, cooking,
        baking, knitting, chess, meditation, dancing, camping, stargazing, woodworking, rock climbing, kayaking,
        boxing, archery, calligraphy, journaling, scuba diving"""
    ),
    "habit": _words(
        """smoke, worry, overthink everything, eat junk food, drink coffee, procrastinate, snore, spend too much money,
        check the phone, stay up late, skip breakfast, watch television|watch TV, bite the nails, play video games,
        interrupt people, drink soda"""
    ),
    "goal": _words(
        """lose weight, build muscle, save money, sleep better, concentrate better, make new friends, remember names,
        get up early, reduce stress, read more books, improve handwriting, gain confidence, write a novel, find a
        job, eat healthily, run a marathon, start a business, pay off debt, become more patient, stay calm in an
        argument"""
    ),
    "mountain": _words(
        """Mount Everest, Kilimanjaro, Mont Blanc, Mount Fuji, K2, Denali, the Matterhorn, Mount Elbrus, Mount Kenya,
        Ben Nevis, Mount Olympus, Aconcagua"""
    ),
    "account": _words(
        """email account, bank account, gym membership, magazine subscription, streaming subscription, phone contract,
        newspaper subscription, hotel reservation, flight booking, insurance policy"""
    ),
    "pest": _words(
        "ants, mosquitoes, mice, moths, fruit flies, cockroaches, wasps, spiders, slugs, snails, rats, weeds"
    ),
    "place": _words("kitchen, garden, house, bedroom, garage, basement, office, apartment|flat"),
    "shop": _words(
        """bakery, restaurant, cafe, bookshop|bookstore, hotel, vegetarian restaurant, swimming pool, museum, flea
        market, sushi bar, jazz club, library"""
    ),
}
