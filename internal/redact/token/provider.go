package token

import (
	"strings"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
)

// Provider tells whether a word before a value is the name of a provider of an API.
type Provider uint8

const (
	// Unknown is a word that no provider has.
	Unknown Provider = iota
	// Common is a provider whose name also precedes values that are not keys, such as
	// hashes and numbers of versions: a word for a key must be next to it.
	Common
	// Telling is a provider whose name before a random value tells that it is a key.
	Telling
)

// maxName is the longest name of a provider, in bytes.
const maxName = 24

// ProviderOf returns what the words of a name, joined, say of a provider. Case does not
// count.
func ProviderOf(words ...[]byte) Provider {
	var name [maxName]byte
	n := 0
	for _, w := range words {
		for _, c := range w {
			if n == len(name) {
				return Unknown
			}
			name[n] = char.ToLower(c)
			n++
		}
	}
	return providers[string(name[:n])]
}

var providers = listProviders()

func listProviders() map[string]Provider {
	m := map[string]Provider{}
	for _, name := range strings.Fields(common) {
		m[name] = Common
	}
	for _, name := range strings.Fields(telling) {
		m[name] = Telling
	}
	return m
}

// common are providers whose names are words of a language, or of ordinary logs and
// configurations.
const common = `
abstract aha anthropic artifactory atlassian auth0 aws azure beamer box branch brave buddy canva cargo
checkout clerk close cloudflare cloudinary codecov column commodities convex copper courier cursor dandelion
devops dgraph discord django docker dockerhub drone elastic enigma etherscan expo firebase fireworks float fly
front fullstory gcp gemini ghost gitea github gitlab google grafana groove guru harness harvest hetzner hive
holistic huggingface hunter ibm impala instagram instatus ionic ionos jenkins jira kafka kagi keycloak
kubernetes lark lichess line linear lob magnetic manifest medium mercury mix moderation monday mongo mongodb
mux neon nightfall nimble notion npm nuget nvidia octopus ollama openai openrouter oracle orbit overloop ovh
paddle parsers particle patreon persona pinterest podio postgres prefect puppet pusher pypi rabbitmq ramp
raven react recaptcha reddit redis refiner render replicate replit retool rev rootly route sanity sauce
scaleway segment sentry shortcut signable signal slack smooch sonar sonarqube splunk square stability steam
strava streak supabase surge swell tableau tailscale teamcity terraform todoist together twist twitter unkey
unplugg unsplash upstash vault vercel vimeo vmware vouchery voyage wechat weights whatsapp wit wix wordpress
yahoo yandex youtube
`

// telling are names that are hardly ever before anything but a key of the provider.
const telling = `
abuseipdb abyssale accuweather activecampaign adafruit adafruitio adobeio adzuna affinda agora airbrake
airship airtable airvisual aiven alchemy alconost alegra aletheiaapi algolia alienvault alphavantage amadeus
ambee amplitude amplitudeapi anthropicapi anypoint apacta api2cart apiflash apify apilayer apimatic apimetrics
apininjas apollo appcenter appcues appfollow appointedd appsflyer appsmith apptivo appveyor artsy asana
assemblyai atera audd autodesk autoklose autopilot avaza aviationstack axonaut aylien backblaze bannerbear
baremetrics baseten beebole besnappy billomat binance bitbar bitbucket bitcoinaverage bitfinex bitly bitmex
bittrex blitapp blockfrost blocknative blogger bombbomb braintree braintreepayments brandfetch brevo
browserstack bscscan bugherd bugsnag buildkite builtwith bulksms bunnycdn buttercms bynder caflou calendarific
calendly calorieninja campaignmonitor campayn cannyio capsulecrm carboninterface cashfree caspio censys
centralstationcrm cerebras chargebee chartmogul chatbot chatfuel chatfule checkmarx checkvist cicero circleci
clarifai clay clearbit clickhelp clicksend clicksendsms clickup clientary clinchpad clockify clockwork
closecrm cloudconvert cloudelements cloudflareapi cloudimage cloudmersive cloudplan cloudsight cloudsmith
cloverly cloze clustdoc codacy codeclimate codemagic codequiry cohere coinapi coinbase coingecko coinlayer
coinlib coinmarketcap collect2 commercejs companieshouse companyhub confluent contentful contentstack
convertkit convier copyscape couchbase coveralls coze craftmypdf crowdin crowdstrike cryptocompare currencyapi
currencycloud currencyfreaks currencylayer currencyscoop currentsapi customerio dailyco dareboost databricks
datadog dataforseo datagov datastax debounce deepai deepgram deepl deepseek delighted demio dependencytrack
deputy detectify detectlanguage deviantart dfuse diffbot diggernaut digicert digitalocean disqus ditto
dnscheck docparser documo docusign dopplerapi dovico dreamhost droneci dropbox duffel duply dwolla dynalist
dynatrace dyspatch eagleeyenetworks easyinsight easypost ecostruxureit edamam edenai elasticemail elevenlabs
enablex endorlabs ethplorer etsy eventbrite everhour exaai exchangerateapi exchangeratesapi extractorapi
facebook faceplusplus facepp factset fastforex fastly feedly fetchrss fibery figma fileio filestack finage
financialmodelingprep findl finicity finnhub firecrawl fireworksai fixerio flatio fleetbase flexport flickr
flightapi flightlabs flightstats flowflu flutterwave fluxguard fmfw formbucket formcraft formio formsite
formspree fourcast foursquare fraudlabspro freemius freshbooks freshdesk freshservice freshworks friendli
frontapp fullcontact fxmarket gengo geoapify geocode geocodify geocodio geoipifi getaddress getemail getemails
getgeoapi getgist getresponse getsandbox giphy gitalk gitter glassnode gocanvas gocardless godaddy goodday
graphcms graphhopper groovehq groq gtmetrix guardianapi gumroad gyazo happyscribe hcaptcha heatmapapi
hellosign helpcrunch helpscout hereapi heroku hiveage holidayapi hostinger html2pdf htmlcsstoimage hubspot
humanity hybiscus hypertrack iconfinder iconscout iexapis iexcloud imagekit imagga imgbb imgix imgur influxdb
infobip infracost infura insightly instabot instamojo intercom interseller intra42 intrinio invoiced
invoiceninja invoiceocean ipapi ipdata ipgeolocation ipify ipinfo ipinfodb ipquality ipqualityscore ipstack
jotform jumpcloud jumpseller jupiterone juro kairos kanban kanbantool karmacrm keenio keygen kickbox kickfire
kinde klaviyo klingai klipfolio knapsackpro kontent kraken kucoin kylas langchain langfuse langsmith
languagelayer larksuite lastfm launchdarkly leadfeeder leankit lemlist lemonsqueezy lendflow lessannoyingcrm
lexigram linemessaging linenotify linkedin linkpreview linode litmus liveagent livestorm localstack locationiq
logdna logentries loggly loginradius logzio lokalise looker loyverse luno madkudu magicbell mailboxlayer
mailchimp mailerlite mailersend mailgun mailjet mailmodo mailosaur mailsac mailtrap mandrill mapbox mapillary
mapquest maptiler marketstack mattermost mavenlink maxmind mediastack meilisearch meistertask meraki mergify
mesibo messagebird metaapi metabase metrilo microsoftteams mindmeister mistral mite mixmax mixpanel mockaroo
monkeylearn moonclerk moosend moralis mparticle mrticktock mulesoft myexperiment myfreshworks myintervals
nasdaqdatalink nethunt netlify netsuite neutrinoapi newrelic newsapi newscatcher newyorktimes nexmo nftport
ngc ngrok nicereply noticeable notionapi nozbe nozbeteams numverify nutritionix nylas nytimes oanda okta
omnisend onedesk onelogin onepagecrm onepassword onesignal onfleet onwater oopspam openaiapi openaiapikey
opencage opencagedata openexchangerates openuv openweather openweathermap opsgenie optimizely owlbot
packagecloud pagerduty pandadoc pandascore paperform parallaldots parsehub parseur particleio partnerstack
passbase pastebin paydirtapp paymoapp paymongo paypal paystack pdflayer pdfshift pendo peopledatalabs pepipost
percy perigon perplexity phantombuster photoroom phraseapp pinata pinecone pipedream pipedrive pivotaltracker
pixabay pixela plaid planetscale planviewleankit planyo platformsh playfab plivo poloniex polygonscan
portainer positionstack postageapp postbacks postcodes posthog postman postmark powrbot privacycom privateai
processst prodpad productboard prospectcrm prospectio protocolsio proxycrawl pubnub pulumi pushbullet pushover
qase qualaroo qualtrics qubole quickbase quickmetrics quicknode rapidapi ravelin rawg razorpay reachmail
readme reallysimplesystems rebrandly rechargepayments refersion remotefirst repairshopr requestfinance resend
restpack restpackhtmltopdfapi retellai revamp revampcrm rijksmuseum ringcentral riot ritekit roaring robinhood
robinhoodcrypto rocketreach rollbar roninapp route4me rownd runpod runrunit salesblink salescookie salesflare
salesforce salesmate satismeter saucelabs scalingo scalr scrapeowl scraperapi scraperbox scrapersite
scrapestack scrapfly scrapingant scrapingbee screenshotapi screenshotlayer screenshotone scrutinizerci
securitytrails selectpdf semaphore sendbird sendgrid sendinblue sendpulse serpapi serphouse serpstack
serverdensity settlemint sheety sherpadesk shipday shippo shipstation shodan shopify shotstack shutterstock
signalwire signaturit signupgenius sigopt simfin simplesat simplybook simplynoted sinch sirv siteleaf skrappio
skybiometry slideshare smartling smartsheet smartsheets smartystreets smsapi snipcart snowflake snyk socrata
sonarcloud sonarqubeapi sourcegraph sparkpost spectral spectralops speechmatics splunkobservability
spoonacular sportradar sportsmonk spotify squarespace sslmate stabilityai stackhawk statuscake statuspage
stitchdata stockdata storecove stormboard stormglass storyblok strapi stripe stytch sugester sumologic
surveyanyplace surveybot surveymonkey surveysparrow survicate swiftype talenox tatum tavily taxjar teamgate
teamworkcrm teamworkdesk teamworkspaces technicalanalysisapi tefter telegram teletype telnyx testingbot
textmagic theoddsapi thingsboard thingspeak thinkific thousandeyes ticketmaster ticktick tiingo timecamp
timezoneapi tineswebhook tmdb tmetric todoistapi togetherai toggl togglapi tokeet tomorrowio tomtom tradier
transferwise travelpayouts travisci trello truenas trufflehog twelvedata twilio twilioapi twitch typeform
typetalk ubidots uclassify unifyid unseal uplead uploadcare uptimerobot upwave urlscan userflow userstack
vagrantcloud vastai vatlayer vbout vercelapi verifier verimail veriphone versioneye vestaboard viewneo
virustotal visualcrossing vkontakte voiceflow voicegain vonage voodoosms voyageai vpnapi vultr vwo vyte
waboxapp wakatime walkscore weatherapi weatherbit weatherstack web3storage webex webflow webscraper
webscraping wepay whoxy wireguard wistia woocommerce wordsapi workos workstack worldcoinindex worldweather
wrike xata yelp youneedabudget yousign youtubeapi zapier zendesk zenkit zenkitapi zenrows zenscrape zenserp
zeplin zerobounce zerotier zhipu zipapi zipbooks zipcodeapi zipcodebase zoho zohocrm zonkafeedback zoom zulip
`

// neutral are words between the name of a provider and its key that say nothing else, and
// those that say that it is a key.
var neutral = listNeutral()

func listNeutral() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`is are was the my our your a an for of to in on with this that value val
		env prod production
		staging dev test live sandbox demo default io com net ai app apps co org
		v1 v2 v3 api rest http https www s x eu us
		user account project team org organization workspace server site bot web mobile basic header
		client init initialize connect sdk setup new request
		string str text const let var export set config setting settings url params`) {
		m[w] = false
	}
	for _, w := range strings.Fields(`key keys apikey token tokens secret secrets auth access pat
		credential credentials password
		passwd license licence apitoken accesstoken secretkey accesskey authtoken apisecret privatekey secrettoken
		private authorization
		authentication crumb oauth bearer login`) {
		m[w] = true
	}
	return m
}

// Between reports whether w may be between a provider's name and its key, and whether it
// says that the value is one. Numbers of one or two digits may.
func Between(w []byte) (may, isKey bool) {
	if len(w) <= 2 && char.DigitsFrom(w, 0, len(w)) == len(w) {
		return true, false
	}
	var name [maxName]byte
	if len(w) > len(name) {
		return false, false
	}
	for i, c := range w {
		name[i] = char.ToLower(c)
	}
	isKey, may = neutral[string(name[:len(w)])]
	return may, isKey
}

// Sizes of a key without a prefix, in bytes.
const (
	MinKey = 16
	MaxKey = 160
)

// IsUsualSize reports whether a key has n bytes: 16, 20, 24, 32 bytes and more in hexadecimal
// or base64, or as many letters and digits.
func IsUsualSize(n int) bool {
	switch n {
	case 20, 24, 32, 36, 40, 43, 44, 48, 50, 64, 80, 84, 86, 88, 96, 128:
		return true
	}
	return false
}

// IsKey reports whether v has the form of a provider's key: letters among digits at random,
// hexadecimal digits, or a UUID.
func IsKey(v []byte) bool {
	if len(v) < MinKey || len(v) > MaxKey {
		return false
	}
	have, turns, signs, dots, same := uint16(0), 0, 0, 0, 0
	hex := true
	for i, c := range v {
		bits := char.Class[c]
		switch {
		case bits&char.Alnum != 0:
		case c == '-' || c == '_':
			signs++
		case c == '+' || c == '/' || c == '.' || c == '=':
			dots++
		default:
			return false
		}
		have |= bits
		hex = hex && bits&char.Hex != 0
		if i == 0 {
			continue
		}
		switch was := char.Class[v[i-1]]; {
		case c == v[i-1]:
			same++
		case (bits^was)&char.Digit != 0 && bits&was&char.Alnum == 0 && bits&was&char.Word != 0:
			turns++
		}
	}
	switch {
	case have&char.Digit == 0 || have&char.Letter == 0 || same*3 > len(v):
		return false
	case isUUID(v):
		return true
	case hex:
		return turns > 3 && have&char.Letter != char.Letter
	case dots > 0 && (len(v) < 32 || have&char.Letter != char.Letter || dots*8 > len(v)), signs*6 > len(v):
		return false
	case have&char.Letter == char.Letter:
		return turns > 4 || turns > 1 && fieldname.IsIrregular(v)
	}
	return turns > 2-len(v)/32 && (signs == 0 || turns > 3)
}

func isUUID(v []byte) bool {
	if len(v) != 36 || v[8] != '-' || v[13] != '-' || v[18] != '-' || v[23] != '-' {
		return false
	}
	for i, c := range v {
		if char.Class[c]&char.Hex == 0 && i != 8 && i != 13 && i != 18 && i != 23 {
			return false
		}
	}
	return true
}
