// What is said about a case that has no answer.

package program

import (
	"bytes"
	"encoding/json"
)

// Answers that are not a completed case: what happened instead.
type outcome struct {
	ID               string `json:"id,omitempty"`
	Nondeterministic bool   `json:"nondeterministic,omitempty"`
	Timeout          bool   `json:"timeout,omitempty"`
	Panic            string `json:"panic,omitempty"`
	Refused          string `json:"refused,omitempty"`
	Error            string `json:"error,omitempty"`
}

func (o outcome) line() []byte { return encode(o) }

// header is what the command needs to know of any case.
type header struct {
	ID     string `json:"id"`
	Family string `json:"family"`
}

// idOf finds the id of a case that did not come back; of an unreadable one there is none.
func idOf(line []byte) string {
	var h header
	_ = json.Unmarshal(line, &h)
	return h.ID
}

// encode writes one line of JSON.
func encode(value any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return encode(outcome{Error: "the answer cannot be written: " + err.Error()})
	}
	return text.Bytes()
}
