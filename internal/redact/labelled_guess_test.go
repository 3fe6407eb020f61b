package redact

import "encoding/base64"

// guessKinds are the kinds of the probabilistic tier, which nothing but the
// surroundings tell. Their texts are of what people write: letters, tickets,
// signatures, lines of configuration.
func guessKinds() map[string]func(*maker) {
	return map[string]func(*maker){"guess: secret": (*maker).guessSecret, "guess: phone": (*maker).guessPhone, "guess: name": (*maker).guessName, "guess: address": (*maker).guessAddress}
}

func labelledGuesses() map[string][]example {
	set := map[string][]example{}
	for kind, do := range guessKinds() {
		m := newMaker(kind)
		do(m)
		set[kind] = m.fill()
	}
	return set
}

// opaque is a random credential of no known format: at least 96 bits.
func (m *maker) opaque() string {
	switch m.r.IntN(4) {
	case 0:
		return m.alnum(24 + m.r.IntN(24))
	case 1:
		return base64.StdEncoding.EncodeToString([]byte(m.of(string(allBytes()), 24+m.r.IntN(24))))
	case 2:
		return base64.RawURLEncoding.EncodeToString([]byte(m.of(string(allBytes()), 24+m.r.IntN(9))))
	}
	return m.of(alnum62+"!#%*+-_.", 20+m.r.IntN(12)) + m.digits(1) + m.of(upper26, 1) + m.of(lower26, 1)
}

func (m *maker) guessSecret() {
	for range 120 {
		m.carry("opaque", one(m,
			"use § to log in", "the new one for prod is §", "I rotated it: § is live now", "client = Client(\"acme\", \"§\")\n", "login(\"admin\", \"§\")\n", "PAYMENTS_PROD=§\n", "HMAC_SALT=§\n", "salt: §\n",
			"signing = '§'\n", `{"hmac":"§"}`, `{"user":"admin","pw":"§"}`, "creds: admin / §\n", "X-Signature-Seed: §\r\nHost: x\r\n", "export DEPLOY_CRED=§\n", "auth=§\n", "license: §\n", "curl -H 'X-Shop: §' https://api.example.com\n",
			"key = \"§\"\n", "encryption: §\n", "the vault answered § for prod/db", "unlock it with §",
		), m.opaque())
	}
	for range 60 {
		m.spare("file", m.plain(), one(m, "main."+m.hex(8)+".js", "chunk-"+m.of(upper26+digits10, 8)+".mjs", "IMG_"+m.digits(8)+"_"+m.digits(6)+".jpg", "libssl.so.3.0.17"))
		m.spare("id", m.plain(), one(m, "msg_01"+m.of(base58Alphabet, 22), "toolu_01"+m.of(base58Alphabet, 22), "chatcmpl-"+m.alnum(29), "req_"+m.alnum(14), "cus_"+m.alnum(14), "arn:aws:s3:::bucket-"+m.hex(8), "W/\""+m.hex(32)+"\""))
		m.spare("code", m.plain(), one(m, "getUserAccountInformationByIdentifier", "XMLHttpRequestEventTargetPrototype", "TestThatTheLongestNameIsNotMasked", "com.example.service.internal.RequestHandlerFactory", "SOME_VERY_LONG_CONSTANT_NAME_OF_2026", "kubernetes.io/service-account.name", "a_function_with_a_rather_long_name_v2", "AbstractSingletonProxyFactoryBean"))
		m.spare("public key", m.plain(), "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"+m.of(std64, 43)+" me")
	}
}

func (m *maker) guessPhone() {
	for range 130 {
		f := one(m,
			[2]string{"de", "030 " + m.digits(4) + " " + m.digits(4)}, [2]string{"de mobile", "0151 " + m.digits(8)}, [2]string{"fr", "0" + one(m, "1", "4", "6", "7") + " " + m.digits(2) + " " + m.digits(2) + " " + m.digits(2) + " " + m.digits(2)},
			[2]string{"in", one(m, "98", "97", "88") + m.digits(3) + " " + m.digits(5)}, [2]string{"au", "04" + m.digits(2) + " " + m.digits(3) + " " + m.digits(3)}, [2]string{"es", "6" + m.digits(2) + " " + m.digits(3) + " " + m.digits(3)},
			[2]string{"jp", "03-" + m.digits(4) + "-" + m.digits(4)}, [2]string{"br", "(11) 9" + m.digits(4) + "-" + m.digits(4)}, [2]string{"ch", "044 " + m.digits(3) + " " + m.digits(2) + " " + m.digits(2)}, [2]string{"uk", "0161 496 0" + m.digits(3)},
			[2]string{"nl", "020 " + m.digits(3) + " " + m.digits(4)}, [2]string{"se", "08-" + m.digits(3) + " " + m.digits(3) + " " + m.digits(2)}, [2]string{"us", "(212) 555 01" + m.digits(2)},
		)
		m.carry(f[0], one(m, "You can find me under § until five.", "Office: §, 9 to 5\n", "or try the front desk, §", "Anna | § | Berlin\n", "TEL;TYPE=cell:§\n", "My number is §.", "§ is her direct line", "ask for Tom, §",
			`{"contact":"§"}`, "kontakt: §\n", "Home § / Work none\n", "Please ring back on § today", "name;city;§\n", "WhatsApp §", "emergency: §\n"), f[1])
		m.spare("numbers", m.plain(), one(m, m.digits(3)+" "+m.digits(3), m.digits(4)+"-"+m.digits(4), "10.20.30.40", "100 200 300 400", "2010-2020", "1 2 3 4 5", "12 34", m.digits(4)+" "+m.digits(4)+" "+m.digits(4), "3.14159 2.71828"))
		m.spare("date", m.plain(), one(m, "2026-11-21", "21.11.2026", "21 11 2026", "11/21/2026", "2026-11-21 03:42:44", "20261121", "03:42:44.123"))
		m.spare("reference", m.plain(), one(m, "978-3-16-148410-0", "INV-2026-"+m.digits(6), "#"+m.digits(8), m.digits(10), "48.8584, 2.2945", "1Z999AA1"+m.digits(10), "SKU 12-34567-89", "ticket "+m.digits(6), "room 0"+m.digits(3), "port 0"+m.digits(4)))
	}
}

// Given names and surnames that are frequent in the statistics of several
// countries.
func (m *maker) person() string {
	first := one(m, "James", "Mary", "Robert", "Patricia", "Michael", "Jennifer", "David", "Linda", "Emma", "Olivia", "Liam", "Noah", "Sophie", "Lukas", "Anna", "Maximilian", "Marie", "Camille", "Pierre", "Giulia", "Marco", "Sofia", "Carlos",
		"Lucía", "Miguel", "João", "Ana", "Priya", "Rahul", "Ananya", "Mohammed", "Fatima", "Ahmed", "Wei", "Yuki", "Haruto", "Olga", "Dmitri", "Katarzyna", "Piotr", "Lars", "Ingrid", "Aoife", "Siobhan", "Thabo", "Chidi")
	last := one(m, "Smith", "Johnson", "Williams", "Brown", "Garcia", "Miller", "Davis", "Rodriguez", "Wilson", "Anderson", "Müller", "Schmidt", "Schneider", "Fischer", "Weber", "Martin", "Bernard", "Dubois", "Rossi", "Russo", "Ferrari",
		"Fernández", "González", "López", "Silva", "Santos", "Oliveira", "Patel", "Sharma", "Singh", "Khan", "Hussain", "Ali", "Chen", "Wang", "Tanaka", "Suzuki", "Ivanova", "Kowalski", "Nowak", "Hansen", "Johansson", "Murphy", "O'Brien", "Nkosi", "Okafor")
	return first + " " + one(m, "", "", "", "", m.of("ABCDEFGHJKLMPRST", 1)+". ") + last
}

func (m *maker) guessName() {
	for range 130 {
		m.carry("full name", one(m, "Dear §,\n\nthank you for your letter.", "Kind regards,\n§\n", "We met § at noon in the lobby.", "The invoice goes to §.", "Please assign it to § and close the other one.", "§ wrote on Monday:\n> hello", "Reported by § yesterday",
			"The patient, §, was seen at 10.", "Mr § called about the order.", "cc § on this", `{"text":"I spoke with § about the plan."}`, "Author: §\n", "Signed-off-by: §\n", "- § (Berlin)\n- nobody else\n", "| § | 12 | open |\n", "According to §, it works.", "customer;§;active\n", "Yours sincerely\n\n§", "Hello §, how are you?"), m.person())
		m.leave("no name", one(m, "New York and San Francisco are far apart.", "Visual Studio Code was updated on Tuesday Morning.", "Apache Kafka and Amazon River are names of things.", "The World Bank met in Washington.", "Machine Learning in Practice, Second Edition", "Kind regards,\nThe Support Team\n", "Dear Customer,\n\nthank you.", "Mark Complete moves the card.",
			"May Day is a holiday in April? No, in May.", "Will this work? Grace periods end in June.", "Rose Garden, Room 12", "Mount Everest is higher than Mont Blanc.", "class UserAccount(BaseModel):", "type Request struct { Name string }", "Hello World", "Dear Sir or Madam,", "General Electric and Deutsche Bank signed.", "South Korea beat North Macedonia.",
			"Content Type and Content Length are headers.", "Google Cloud Platform, Microsoft Azure", "Terms of Service and Privacy Policy", "Monday, Tuesday, Wednesday", "Pull Request 412 by the build bot", "HTTP Status Codes: Not Found, Bad Request", "Red Hat Enterprise Linux 10", "Star Wars and Jurassic Park", "Holy Roman Empire, French Revolution",
			"Jordan borders Israel; Chad borders Niger.", "Frank discussion, bill of rights, a mark of quality", "Read Only Memory", "Supreme Court of the United States", "Black Friday Sale", "Hope Street is closed", "Saint Petersburg and Los Angeles", "The Ruby gem and the Rust crate", "Error: Null Pointer Exception in Main Thread",
			"Author: The Build System\n", "Reported by Sentry yesterday", "- Berlin (Germany)\n- Paris (France)\n", "According to Stack Overflow, it works.", "Please assign it to Team Blue.", "Product Manager, Sales Director, Chief of Staff"))
	}
}

// address is one in its country's order; what must be hidden is street and
// number, and the place may be.
func (m *maker) address() (street, place string) {
	n := m.digits(2)
	for n[0] == '0' {
		n = m.digits(2)
	}
	switch m.r.IntN(7) {
	case 0, 1:
		return n + m.digits(1) + " " + one(m, "Evergreen", "Maple", "Washington", "Oak Hill", "Lincoln", "Cedar") + " " + one(m, "Street", "Avenue", "Blvd", "Road", "Drive", "Lane", "St", "Ave"), one(m, ", Springfield, IL 62", ", Portland, OR 97", ", Austin, TX 78") + m.digits(3)
	case 2:
		return n + " " + one(m, "High", "Station", "Church", "Victoria") + " " + one(m, "Street", "Road", "Lane"), one(m, ", London SW1A 2AA", ", Leeds LS1 4AP", ", Bristol BS8 1TH")
	case 3:
		return one(m, "Hauptstraße", "Bahnhofstr.", "Lindenweg", "Goethestraße", "Marktplatz") + " " + n, one(m, ", 10115 Berlin", ", 80331 München", ", 50667 Köln")
	case 4:
		return n + " " + one(m, "rue de la Paix", "avenue Victor Hugo", "boulevard Voltaire", "rue du Bac"), one(m, ", 75002 Paris", ", 69003 Lyon", ", 13001 Marseille")
	case 5:
		if m.r.IntN(2) == 0 {
			return one(m, "Via Roma", "Via Garibaldi", "Piazza Navona") + " " + n, one(m, ", 00184 Roma", ", 20121 Milano")
		}
		return one(m, "Calle Mayor", "Avenida de América") + " " + n, one(m, ", 28013 Madrid", ", 41004 Sevilla")
	}
	return one(m, "PO Box", "P.O. Box") + " " + m.digits(4), ", Wellington 6011"
}

func (m *maker) guessAddress() {
	for range 100 {
		street, place := m.address()
		c := one(m, "Please send it to § before Friday.", "Ship to: §\n", "She lives at §.", "Our office, §, is closed on Sunday.", "Address:\n§\n", `{"text":"The parcel is for §, second floor."}`, "| § | delivered |\n", "he moved to § last year", "§\n", "Lieferadresse: §\n", "Meet me at § at noon.")
		m.carry("street and place", c, street+place)
		e := &m.list[len(m.list)-1]
		for i, l := range e.want {
			e.may = append(e.may, l)
			e.want[i].end = l.start + len(street)
		}
		for range 3 {
			m.leave("no address", one(m, "Wall Street fell by 12 points on Monday.", "12 roads lead to Rome.", "The road to version 20 is long.", "Chapter 12 Road Safety", "see section 14 Street View", "10 Downing is a film? No.", "Main Street is a term of politics.", "5 lanes, 3 avenues of attack", "drive 40 miles", "Sesame Street, season 52",
				"rue the day", "via email 24 hours a day", "Via 10 hops", "Box 12 is empty", "the PO was sent, box 3", "calle 5 veces", "/dev/sda1 drive 2", "lane 4 of 8 PCIe", "24 Drive bays", "Marktplatz der Ideen", "400 Bad Request", "line 12, column 80", "2026 World Avenue of the Year", "hard drive 512 GB", "500 Internal Server Error",
				"St. Petersburg, 5 million people", "12 St. of the art", "way 3: restart it", "the third way", "Court 9 will decide", "Square root of 144", "Times Square 2026", "floor 12, room 7", "Suite of 40 tests", "place 3 in the list", "10115 requests", "SW1A requests", "terrace of 30 square metres", "Berlin 2026, Paris 2024"))
		}
	}
}
