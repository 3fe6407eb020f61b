package redaction

import (
	"encoding/json"
	"unicode/utf8"
)

// presidioKinds are the entity types that have a form.
var presidioKinds = map[string]string{
	"EMAIL_ADDRESS": "email", "IBAN_CODE": "IBAN", "US_SSN": "SSN", "CREDIT_CARD": "card", "PHONE_NUMBER": "phone",
}

var presidioTargets = map[string]target{
	"email": {atLeast: 99}, "IBAN": {atLeast: 99}, "SSN": {atLeast: 99}, "card": {atLeast: 99}, "phone": {atLeast: 75},
}

// readPresidio reads the generated texts of presidio-research with their entities. The text
// around the entities is what should be left; other entities, such as names, are neither.
func readPresidio(dir string, each func(Text) error) error {
	return walkFiles(dir, hasExtension(".json"), func(path string, content []byte) error {
		var list []struct {
			Text  string `json:"full_text"`
			Spans []struct {
				Kind  string `json:"entity_type"`
				Start int    `json:"start_position"`
				End   int    `json:"end_position"`
			} `json:"spans"`
		}
		if json.Unmarshal(content, &list) != nil {
			return nil
		}
		for _, x := range list {
			t := Text{Path: path, Body: []byte(x.Text)}
			taken := make([]bool, len(x.Text)+1)
			for _, s := range x.Spans {
				from, to := byteOffset(x.Text, s.Start), byteOffset(x.Text, s.End)
				for i := from; i < to; i++ {
					taken[i] = true
				}
				if class, ok := presidioKinds[s.Kind]; ok && from < to {
					t.Marks = append(t.Marks, Mark{Class: class, Start: from, End: to, Secret: true})
				}
			}
			t.Marks = append(t.Marks, markRest(taken)...)
			if err := each(t); err != nil {
				return err
			}
		}
		return nil
	})
}

// markRest marks each stretch of a text that no entity takes.
func markRest(taken []bool) (list []Mark) {
	for i := 0; i < len(taken)-1; i++ {
		from := i
		for i < len(taken)-1 && !taken[i] {
			i++
		}
		if i > from {
			list = append(list, Mark{Class: "text between entities", Start: from, End: i,
				Rules: []string{"secret.", "email", "card", "pii."}})
		}
	}
	return list
}

// byteOffset returns the offset in bytes of a character.
func byteOffset(s string, character int) int {
	at := 0
	for ; character > 0 && at < len(s); character-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}
