package notify

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// webhook is an address that takes JSON or a form by POST: a program of the
// person's own, or the HTTP API of a gateway for short messages. The address is
// written as shoutrrr's generic service has it.
type webhook struct {
	url    string
	header http.Header
	extra  map[string]string // fields of the body
	text   string            // the field that the words stand in; "" for the whole message
	title  string            // that of the title; "" for none
	form   bool
}

// openWebhook takes https://host/path?query. In the query @NAME is a header,
// $NAME a field of the body, messagekey and titlekey name the fields that the
// words stand in, and form=yes makes the body a form; the rest belongs to the
// address.
func openWebhook(u *url.URL) (sender, error) {
	to := bare(u)
	if err := reachable(&to); err != nil {
		return nil, err
	}
	w := &webhook{header: http.Header{}, extra: map[string]string{}}
	if u.User != nil {
		password, _ := u.User.Password()
		w.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
		to.User = nil
	}
	query := u.Query()
	for key, values := range u.Query() {
		switch {
		case strings.HasPrefix(key, "@"):
			if !httpguts.ValidHeaderFieldName(key[1:]) || !httpguts.ValidHeaderFieldValue(values[0]) {
				return nil, failed("its address has a header that is none")
			}
			w.header.Set(key[1:], values[0])
		case strings.HasPrefix(key, "$"):
			w.extra[key[1:]] = values[0]
		case key == "messagekey":
			w.text = values[0]
		case key == "titlekey":
			w.title = values[0]
		case key == "form":
			w.form = values[0] == "yes"
		default:
			continue
		}
		query.Del(key)
	}
	if w.text == "" && (len(w.extra) > 0 || w.title != "" || w.form) {
		w.text = "message"
	}
	to.RawQuery = query.Encode()
	w.url = to.String()
	return w, nil
}

func (w *webhook) send(ctx context.Context, m *Message, kind Kind) error {
	header := w.header.Clone()
	header.Set("Holdfast-Delivery", m.ID)
	body, err := json.Marshal(m)
	kept := "application/json"
	if w.text != "" {
		body, kept, err = w.fields(m, kind)
	}
	if err != nil {
		return err
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", kept)
	}
	_, err = post(ctx, w.url, header, body)
	return err
}

// fields is the body where its fields are named.
func (w *webhook) fields(m *Message, kind Kind) (body []byte, contentType string, err error) {
	all := map[string]string{w.text: kind.words(m)}
	if w.title != "" {
		all[w.title] = inert(m.Title)
	}
	for k, v := range w.extra {
		all[k] = v
	}
	if w.form {
		form := url.Values{}
		for k, v := range all {
			form.Set(k, v)
		}
		return []byte(form.Encode()), "application/x-www-form-urlencoded", nil
	}
	body, err = json.Marshal(all)
	return body, "application/json", err
}
