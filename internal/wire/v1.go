package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// envelope1 is the first chunk of a PCP 1 message.
type envelope1 struct {
	ID        string `json:"id"`
	Type      string `json:"message_type"`
	Expires   string `json:"expires"`
	Targets   []URI  `json:"targets"`
	Sender    URI    `json:"sender"`
	Report    bool   `json:"destination_report,omitzero"`
	InReplyTo string `json:"in-reply-to,omitempty"` // with hyphens, unlike PCP 2
}

// neverExpires is what brokers have sent since they stopped to look at it.
const neverExpires = "1970-01-01T00:00:00.000Z"

func decode1(frame []byte) (Message, error) {
	c, err := splitFrame(frame)
	if err != nil {
		return Message{}, err
	}
	var e envelope1
	err = decoded(c.envelope, &e, strict)
	m := Message{ID: e.ID, Type: e.Type, Sender: e.Sender, InReplyTo: e.InReplyTo}
	if len(e.Targets) > 0 {
		m.Target = e.Targets[0]
	}
	if len(e.Targets) > 1 {
		m.Others = e.Targets[1:]
	}
	switch {
	case err != nil:
		return m, undecodable("the envelope", err)
	case e.Expires == "" || e.Sender == "" || e.Targets == nil:
		return m, fault.New(fault.Invalid, "the envelope lacks one of its fields expires, sender and targets")
	}
	if err := m.Check(); err != nil {
		return m, err
	}
	if len(c.data) > 0 {
		if err := decoded(c.data, &m.Data, strict); err != nil {
			return m, fault.New(fault.Invalid, "the data chunk is not JSON")
		}
	}
	if m.Type == ErrorMessage {
		return errorFrom1(m)
	}
	return m, nil
}

// errorFrom1 makes the string of PCP 2 out of the object of PCP 1.
func errorFrom1(m Message) (Message, error) {
	var p problem
	if err := unmarshal(m.Data, &p); err != nil {
		return m, err
	}
	if p.Description == nil {
		return m, fault.New(fault.Invalid, "field data: an error message has a description")
	}
	m.Data = Data(*p.Description)
	if p.ID != "" {
		m.InReplyTo = p.ID
	}
	return m, m.Check()
}

func append1(dst []byte, m Message) ([]byte, error) {
	e := envelope1{ID: m.ID, Type: m.Type, Expires: neverExpires, Targets: []URI{}, Sender: m.Sender}
	if e.Sender == "" {
		e.Sender = Broker
	}
	if m.Target != "" {
		e.Targets = append([]URI{m.Target}, m.Others...)
	}
	data := m.Data
	switch m.Type {
	case ErrorMessage:
		data = errorTo1(m)
	case InventoryResponse: // the only one for which clients of PCP 1 expect it
		e.InReplyTo = m.InReplyTo
	}
	if data == nil {
		data = jsontext.Value("null") // clients count on a data chunk
	}
	start := len(dst)
	dst, err := appendChunk(append(dst, versionByte), chunkEnvelope, func(to []byte) ([]byte, error) { return appendJSON(to, e) })
	if err == nil {
		dst, err = appendChunk(dst, chunkData, func(to []byte) ([]byte, error) { return append(to, data...), nil })
	}
	if err != nil {
		return dst[:start], err
	}
	return dst, nil
}

// errorTo1 is the inverse of errorFrom1. What is no string is shown as it is.
func errorTo1(m Message) jsontext.Value {
	text, err := ParseError(m.Data)
	if err != nil {
		text = string(m.Data)
	}
	return Data(problem{Description: &text, ID: m.InReplyTo})
}
