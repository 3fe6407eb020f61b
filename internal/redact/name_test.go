package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestJSONStructureStays holds that what only describes, counts or refers is not masked
// because of a name.
func TestJSONStructureStays(t *testing.T) {
	e := newEngine(t)
	for _, doc := range []string{
		`{"tools":[{"name":"login","input_schema":{"type":"object","properties":{"password":{"type":"string","description":"At least 12 signs"},"first_name":{"type":"string"}}}}]}`,
		`{"properties":{"token":{"description":"The token","anyOf":[{"type":"string"},{"type":"null"}]},"api_key":{"$ref":"#/x"}},"required":["token","api_key"]}`,
		`{"parameters":{"type":"dict","properties":{"credentials":{"type":"dict","properties":{"username":{"type":"string"},"password":{"type":"string"}},"required":["username"]}}}}`,
		`{"properties":{"password":{"type":"string","default":"defaultP@ss1"}}}`,
		`{"auth":{"type":"string","enum":["basic","oauth2"],"default":"basic"}}`,
		`{"secret":{"title":"Secret","minLength":8,"type":["string","null"]}}`,
		`{"fields":[{"name":"password","label":"Password","type":"password","required":true}]}`,
		`{"password":{"label":"Your password","placeholder":"Enter your password","help":"Ask the administrator"}}`,
		`{"repository":{"id":1,"full_name":"acme/rocket"}}`, `{"full_name":"torch.nn.Linear"}`,
		`{"fullName":"my-package"}`, `{"full_name":"acme_rocket"}`,
		`{"logprobs":{"content":[{"token":" Paris","logprob":-0.1,"top_logprobs":[{"token":" Rome","logprob":-2}]}]}}`,
		`[{"token":"Par","bytes":[80,97,114],"logprob":-0.01}]`,
		`{"token":{"id":7,"text":" a","logprob":-1.5,"special":false}}`,
		`{"nextPageToken":"CAUQAA"}`, `{"page_token":"abcdef123"}`,
		`{"params":{"_meta":{"progressToken":"job-7"}}}`, `{"continuation_token":"x1"}`,
		`{"NextToken":"AAAA1111"}`, `{"nextSyncToken":"CPDAlvWDx70C"}`,
		`{"eos_token":"</s>","bos_token":"<s>","pad_token":"[PAD]","unk_token":"<unk>"}`,
		`{"max_tokens":4096,"token_type":"bearer","tokens":12,"token":5,"tokenCount":"12"}`,
		`{"credentials":"include"}`, `{"password":"${DB_PASSWORD}"}`, `{"token":"{{ token }}"}`,
		`{"api_key":"<your-api-key>"}`, `{"api_key":"YOUR_API_KEY"}`,
		`{"password":"Password","token":"Access token"}`,
		`{"password":"Enter your password","secret":"The secret must not be empty."}`,
		`{"token":"https://id.example.com/oauth/token"}`, `{"credentials":"/etc/app/credentials.json"}`,
		`{"password":"required|min:8"}`, `{"auth":"basic"}`, `{"auth":"required"}`,
		`{"primary_key":"q8ZtB2mWc0LrYv7nKd3XjH5pUs1EaG9f"}`, `{"cache_key":"9f86d081884c7d659a2feaa0c55ad015"}`,
		`{"issue_key":"ABC-1234"}`, `{"sort_key":"name"}`,
		`{"password_url":"https://x.example","password_policy":"strict","secret_arn":"arn:aws:x","tokenEndpoint":"/t","credentialsId":"ci"}`,
	} {
		r, err := e.JSON([]byte(doc))
		if err != nil || r.Found() {
			t.Errorf("%s became %s, %v", doc, r.Out, err)
		}
		if r := e.Text([]byte(doc)); r.Found() {
			t.Errorf("as text %s became %s", doc, r.Out)
		}
	}
}

// TestJSONNamesTellSecrets holds that the value of a name is masked, whatever is added
// to the name, and that the document stays JSON.
func TestJSONNamesTellSecrets(t *testing.T) {
	e := newEngine(t)
	const v, random = "Maple417!xq", "q8ZtB2mWc0LrYv7nKd3XjH5pUs1EaG9f"
	for _, doc := range []string{
		`{"password1":"§","password2":"§"}`, `{"API_TOKEN_PROD":"§"}`, `{"apiToken_2":"§"}`,
		`{"dbPasswordOld":"§"}`, `{"token1":"§"}`, `{"API_KEY_V2":"§"}`,
		`{"clientSecretValue":"§"}`, `{"contraseña":"§"}`, `{"Пароль":"§"}`, `{"登录密码":"§"}`, `{"パスワード":"§"}`,
		`{"mot_de_passe":"§"}`, `{"Passwort":"§"}`, `{"wachtwoord":"§"}`,
		`{"value":"§","name":"DB_PASSWORD"}`, `{"value":"§","secure":true,"type":"x"}#`,
		`{"env":[{"value":"§","type":"plain","name":"API_TOKEN"}]}`, `{"val":"§","key":"secret_key"}`,
		`{"name":"X-Api-Key","value":"§"}`,
		`{"auth":"Bearer §"}`, `{"auth":"§"}`,
		`{"TWITCHY_KEY":"$"}`, `{"deepgramKey":"$"}`, `{"openweather_key":"$"}`,
		`{"choices":[{"logprobs":null,"message":{"password":"§"}}]}`,
		`{"credentials":{"type":"basic","user":"kim","pass":"§"}}`,
	} {
		if strings.HasSuffix(doc, "#") {
			continue
		}
		in := strings.NewReplacer("§", v, "$", random).Replace(doc)
		r, err := e.JSON([]byte(in))
		if err != nil || strings.Contains(string(r.Out), v) || strings.Contains(string(r.Out), random) ||
			!json.Valid(r.Out) {
			t.Errorf("%s became %s, %v", in, r.Out, err)
		} else if again, _ := e.JSON(r.Out); again.Found() {
			t.Errorf("%s became %s", r.Out, again.Out)
		}
	}
}
