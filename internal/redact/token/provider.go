package token

import (
	"strings"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

// Provider is what a word before a value says of a provider of an API.
type Provider uint8

const (
	// Unknown is a word that no provider has.
	Unknown Provider = iota
	// Common is a provider whose name stands before other values than keys too, such as
	// hashes and numbers of versions: only a word for a key next to it tells.
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
abstract aha airtable algolia amplitude anthropic apollo artifactory asana atlassian auth0 aws azure beamer
bitbucket bitly box branch brave braintree buildkite cargo checkout circleci clay clerk close cloudflare cloudinary
codecov cohere coinbase column confluent convex copper courier cursor customerio dandelion databricks datadog
deepseek devops dgraph discord docker dockerhub dropbox drone dynatrace elastic etherscan expo facebook fastly
figma firebase flickr float flutterwave fly fullstory gcp ghost github gitlab gitter google grafana groq harness
harvest heroku hetzner hubspot huggingface hunter ibm infura instagram intercom ionic ionos jenkins jira kafka keycloak
kraken kubernetes lark launchdarkly line linear linkedin linode lob looker mailchimp mapbox mattermost medium
mistral mix monday mongo mongodb mux netlify neon new newrelic nightfall nimble notion npm nuget nvidia octopus okta
ollama openai openrouter opsgenie oracle ovh pagerduty patreon paypal pendo percy pinecone pinterest plaid
podio postgres postman prefect pulumi puppet pusher pypi rabbitmq react reddit redis render replicate replit
retool rollbar rootly route salesforce scaleway segment sentry shopify shortcut signal slack smooch snowflake snyk
sonar sonarcloud sonarqube sourcegraph splunk spotify square squarespace stability statuspage steam strava stripe
supabase surge tableau teamcity telegram terraform todoist together trello twilio twist twitch twitter
typeform unsplash upstash vault vercel vimeo vmware voyage wechat weights whatsapp wit wix wordpress yahoo yandex
youtube zendesk zoom zoho unseal
`

// telling are names that are hardly ever before anything but a key of the provider.
const telling = `
abuseipdb abyssale accuweather activecampaign adafruit adafruitio adobeio adzuna affinda agora airbrake airship airvisual
aletheiaapi aiven alchemy alconost alegra alienvault alphavantage amadeus ambee amplitudeapi apacta api2cart apiflash
apify apilayer apimatic apimetrics apininjas appcenter appcues appfollow appointedd appsflyer appsmith apptivo
appveyor artsy assemblyai atera audd autodesk autoklose autopilot avaza aviationstack axonaut aylien backblaze bannerbear
baremetrics baseten beebole besnappy billomat binance bitbar bitcoinaverage bitfinex bitmex bittrex blitapp blocknative
blockfrost blogger bombbomb brandfetch braintreepayments brevo browserstack bscscan bugherd bugsnag bulksms bunnycdn bynder
caflou calendarific calendly calorieninja campaignmonitor campayn cannyio capsulecrm carboninterface cashfree caspio censys
centralstationcrm cerebras chargebee chartmogul chatbot chatfuel checkvist checkmarx chatfule cicero clarifai clearbit clickhelp
clicksend clicksendsms clickup clientary clinchpad clockify clockwork closecrm cloudconvert cloudelements cloudflareapi
cloudimage cloudmersive cloudplan cloudsight cloudsmith cloverly cloze clustdoc codacy codeclimate codemagic codequiry coinapi
coingecko coinlayer coinlib coinmarketcap collect2 commercejs commodities companieshouse companyhub contentful contentstack convertkit
convier copyscape couchbase coveralls coze craftmypdf crowdin crowdstrike cryptocompare currencyapi currencycloud currencyfreaks currencylayer
currencyscoop currentsapi dailyco dareboost datagov dataforseo debounce deepai deepgram deepl delighted demio deputy
detectify detectlanguage deviantart dfuse diffbot diggernaut digicert digitalocean disqus ditto documo docparser docusign dopplerapi dovico
dnscheck dreamhost droneci duffel duply dwolla dynalist dyspatch easyinsight easypost eagleeyenetworks ecostruxureit edamam edenai
elasticemail elevenlabs enablex enigma ethplorer etsy eventbrite everhour exchangerateapi exchangeratesapi exaai extractorapi
facepp faceplusplus factset fastforex feedly fetchrss fibery filestack fileio finage financialmodelingprep findl finicity finnhub firecrawl fixerio flatio
fleetbase flexport flightapi flightlabs flightstats flowflu fluxguard fmfw formbucket formcraft formio formsite formspree fourcast
foursquare fraudlabspro freemius freshbooks freshdesk freshservice freshworks front frontapp fullcontact fxmarket gengo
geoapify geocode geocodify geocodio geoipifi getaddress getemail getemails getgeoapi getgist getresponse getsandbox giphy glassnode gocanvas
gocardless godaddy goodday graphcms graphhopper groovehq gtmetrix guardianapi gumroad guru gyazo happyscribe helpcrunch helpscout
hellosign hereapi heatmapapi hcaptcha hive hiveage holidayapi holistic hostinger html2pdf htmlcsstoimage humanity hybiscus hypertrack iconfinder iconscout
iexapis iexcloud imagekit imagga imgbb imgix impala imgur influxdb infobip infracost insightly instabot instamojo instatus interseller intra42
intrinio invoiced invoiceninja invoiceocean ipapi ipdata ipgeolocation ipify ipinfo ipinfodb ipquality ipqualityscore ipstack jotform jumpcloud
jumpseller jupiterone juro kairos kanban kanbantool karmacrm keenio keygen kickbox kickfire kinde klaviyo klipfolio knapsackpro kontent kucoin kylas
langchain langfuse langsmith languagelayer larksuite lastfm leadfeeder leankit lemlist lemonsqueezy lendflow lessannoyingcrm lexigram linenotify linemessaging
linkpreview litmus liveagent livestorm locationiq loginradius logdna logentries loggly logzio lokalise loyverse luno madkudu magicbell magnetic mailboxlayer
mailerlite mailersend mailgun mailjet mailmodo mailosaur mailsac mailtrap mandrill manifest mapquest mapillary maptiler marketstack mavenlink
maxmind mediastack meistertask meilisearch meraki mesibo messagebird metaapi metabase metrilo microsoftteams mindmeister
mite mixmax mixpanel mockaroo moderation monkeylearn moonclerk moosend moralis mparticle mrticktock myexperiment myfreshworks myintervals
nasdaqdatalink nethunt netsuite neutrinoapi newsapi newscatcher newyorktimes nexmo nftport ngc ngrok nicereply noticeable notionapi nozbe
nozbeteams numverify nutritionix nylas nytimes oanda omnisend onedesk onelogin onepagecrm onesignal onfleet onwater oopspam openaiapi
openexchangerates opencage opencagedata openuv openweather openweathermap optimizely orbit overloop owlbot packagecloud paddle pandadoc pandascore
paperform parallaldots parsehub parsers parseur partnerstack passbase pastebin paydirtapp paymoapp paymongo paystack pdflayer pdfshift peopledatalabs
pepipost perplexity perigon persona phantombuster photoroom phraseapp pipedream pipedrive pivotaltracker pixabay pixela planetscale planviewleankit
planyo platformsh playfab plivo poloniex polygonscan portainer positionstack postageapp postbacks postcodes posthog postmark powrbot privacycom
processst prodpad productboard prospectcrm prospectio protocolsio proxycrawl pubnub pushbullet pushover qase qualaroo qualtrics qubole quickbase
quickmetrics ramp rapidapi raven ravelin rawg razorpay reachmail readme reallysimplesystems rebrandly rechargepayments refersion refiner remotefirst
repairshopr requestfinance resend restpack restpackhtmltopdfapi retellai rev revamp revampcrm rijksmuseum ringcentral riot ritekit roaring robinhood
robinhoodcrypto rocketreach roninapp route4me rownd runpod runrunit salesblink salescookie salesflare salesmate sanity saucelabs satismeter scalr
scalingo scrapeowl scraperapi scraperbox scrapestack scrapfly scrapingant scrapingbee scrapersite screenshotapi screenshotlayer screenshotone scrutinizerci
securitytrails selectpdf semaphore sendbird sendgrid sendinblue sendpulse serpapi serphouse serpstack serverdensity settlemint sheety sherpadesk shipday
shippo shipstation shodan shotstack shutterstock signable signalwire signaturit signupgenius sigopt simfin simplesat simplybook simplynoted
sinch sirv siteleaf skrappio skybiometry slideshare smartling smartsheet smartsheets smartystreets smsapi snipcart socrata sonarqubeapi
sparkpost speechmatics spectral spectralops splunkobservability spoonacular sportradar sportsmonk sslmate stackhawk statuscake stitchdata stockdata
storecove storyblok stormboard stormglass strapi streak stytch sugester sumologic surveyanyplace surveybot surveymonkey surveysparrow survicate swell swiftype
talenox tatum tavily taxjar teamgate teamworkcrm teamworkdesk teamworkspaces technicalanalysisapi tefter teletype telnyx testingbot textmagic theoddsapi
thinkific thingsboard thousandeyes ticketmaster ticktick tiingo timecamp timezoneapi tineswebhook tmdb tmetric todoistapi togetherai togglapi toggl tokeet tomorrowio
tomtom tradier transferwise travelpayouts travisci truenas trufflehog twelvedata twilioapi typetalk ubidots uclassify unifyid unplugg uplead uploadcare uptimerobot upwave
urlscan userflow userstack vagrantcloud vatlayer vbout vercelapi verifier verimail veriphone versioneye vestaboard viewneo virustotal visualcrossing voicegain
voiceflow vonage voodoosms vouchery vpnapi vultr vyte vwo waboxapp wakatime walkscore weatherapi weatherbit weatherstack web3storage webex webflow
webscraper webscraping wepay whoxy wistia workos workstack worldcoinindex worldweather wordsapi wrike xata yelp youneedabudget youtubeapi yousign zapier zenserp zenkit zenkitapi zenrows
zenscrape zeplin zerobounce zerotier zipapi zipbooks zipcodeapi zipcodebase zohocrm zonkafeedback zulip zhipu klingai
`

// neutral are words between the name of a provider and its key that say nothing else, and
// those that say that it is a key.
var neutral = listNeutral()

func listNeutral() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`is are was the my our your a an for of to in on with this that value val env prod production
		staging dev test live sandbox demo default io com net ai app apps co org v1 v2 v3 api rest http https www s x eu us
		user account project team org organization workspace server site bot web mobile oauth bearer basic header
		string str text const let var export set config setting settings url params`) {
		m[w] = false
	}
	for _, w := range strings.Fields(`key keys apikey token tokens secret secrets auth access pat credential credentials password
		passwd license licence apitoken accesstoken secretkey accesskey authtoken apisecret privatekey secrettoken private authorization
		authentication crumb operator`) {
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
	MinKey = 20
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
// 20 hexadecimal digits or more, or a UUID.
func IsKey(v []byte) bool {
	if len(v) < MinKey || len(v) > MaxKey {
		return false
	}
	have, turns, flips, signs, dots, same := uint16(0), 0, 0, 0, 0, 0
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
		case (bits^was)&char.Letter == char.Letter:
			flips++
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
		return turns > 2 && turns+flips > 6
	}
	return turns > 3-len(v)/32 && (signs == 0 || turns > 3)
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
