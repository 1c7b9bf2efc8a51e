package wire_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
)

// envelope is a good PCP 1 envelope with one part exchanged.
func envelope(old, replacement string) string {
	const good = `{"id":"` + id1 +
		`","message_type":"http://puppetlabs.com/x","expires":"2026-01-01T00:00:00Z","targets":["pcp:///server"],"sender":"pcp://web1/agent"}`
	return strings.Replace(good, old, replacement, 1)
}

func frame(chunks ...string) []byte {
	out := []byte{1}
	for i := 0; i+1 < len(chunks); i += 2 {
		out = append(out, chunks[i][0])
		out = binary.BigEndian.AppendUint32(out, uint32(len(chunks[i+1])))
		out = append(out, chunks[i+1]...)
	}
	return out
}

func TestWrongFrames(t *testing.T) {
	t.Parallel()
	good := envelope("", "")
	for name, c := range map[string]struct {
		frame []byte
		want  string
	}{
		"nothing":          {nil, "version byte"},
		"version 2":        {append([]byte{2}, frame("\x01", good)[1:]...), "version byte 1"},
		"text":             {[]byte(good), "version byte"},
		"no chunk":         {[]byte{1}, "no envelope"},
		"half a header":    {[]byte{1, 1, 0, 0}, "ends inside a chunk's header: 3 bytes of 5"},
		"too long":         {[]byte{1, 1, 0, 0, 0, 9, '{'}, "announces 9 bytes, but the frame has 1 more"},
		"negative":         {[]byte{1, 1, 0xff, 0xff, 0xff, 0xff, '{'}, "announces 4294967295 bytes"},
		"data first":       {frame("\x02", "{}", "\x01", good), "a chunk of kind 2 after one of kind 0"},
		"two envelopes":    {frame("\x01", good, "\x01", good), "a chunk of kind 1 after one of kind 1"},
		"data twice":       {frame("\x01", good, "\x02", "1", "\x02", "2"), "a chunk of kind 2 after one of kind 2"},
		"unknown kind":     {frame("\x01", good, "\x07", "1"), "a chunk of kind 7"},
		"data not JSON":    {frame("\x01", good, "\x02", "{"), "the data chunk is not JSON"},
		"envelope no JSON": {frame("\x01", "{"), "the envelope: it is not the JSON object"},
		"unknown key":      {frame("\x01", envelope(`"id"`, `"more":1,"id"`)), "the key /more is not known"},
		"no id":            {frame("\x01", envelope(`"id":"`+id1+`",`, "")), "field id"},
		"no sender":        {frame("\x01", envelope(`,"sender":"pcp://web1/agent"`, "")), "lacks one of its fields"},
		"no expires":       {frame("\x01", envelope(`"expires":"2026-01-01T00:00:00Z",`, "")), "lacks one of its fields"},
		"no targets":       {frame("\x01", envelope(`"targets":["pcp:///server"],`, "")), "lacks one of its fields"},
		"bad target":       {frame("\x01", envelope(`pcp:///server`, "server")), "field target"},
		"bad other":        {frame("\x01", envelope(`"pcp:///server"`, `"pcp:///server","x"`)), "field targets"},
		"error as string":  {frame("\x01", envelope("http://puppetlabs.com/x", wire.ErrorMessage), "\x02", `"text"`), "field data"},
		"error in silence": {frame("\x01", envelope("http://puppetlabs.com/x", wire.ErrorMessage), "\x02", `{}`), "has a description"},
	} {
		if _, err := wire.V1.Decode(c.frame); err == nil || fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestFramesThatAreTolerated(t *testing.T) {
	t.Parallel()
	for name, f := range map[string][]byte{
		"flags in the descriptor": frame("\xf1", envelope("", ""), "\x32", `{"a":1}`),
		"debug chunks":            frame("\x01", envelope("", ""), "\x02", `{"a":1}`, "\x03", "{", "\x03", ""),
		"two equal keys":          frame("\x01", envelope("", ""), "\x02", `{"a":2,"a":1}`),
	} {
		m, err := wire.V1.Decode(f)
		if err != nil || m.ID != id1 || m.Data == nil {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	empty, err := wire.V1.Decode(frame("\x01", envelope(`["pcp:///server"]`, `[]`), "\x02", ""))
	if err != nil || empty.Target != "" || empty.Data != nil {
		t.Errorf("without targets and data: %+v, %v", empty, err)
	}
	several, err := wire.V1.Decode(frame("\x01", envelope(`"pcp:///server"`, `"pcp://a/b","pcp://c/d"`)))
	if err != nil || several.Target != "pcp://a/b" || len(several.Others) != 1 {
		t.Errorf("two targets: %+v, %v", several, err)
	}
	if _, err := wire.V2.Append(nil, several); fault.Of(err) != fault.Invalid {
		t.Errorf("two targets in PCP 2: %v", err)
	}
}

func TestWrongTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                   "the message: it is not the JSON object",
		"hello":              "the message: it is not the JSON object",
		"[]":                 "it has the wrong type",
		"{}":                 "field id",
		`{"id":"abc"}`:       `field id: "abc" is not a UUID`,
		`{"id":7}`:           "the value of /id has the wrong type",
		`{"id":"1-1-1-1-1"}`: "field message_type",
		`{"id":"1-1-1-1-1","message_type":"` + strings.Repeat("x", 257) + `"}`:                "field message_type: it has 257 bytes",
		`{"id":"1-1-1-1-1","message_type":"x","target":"web1"}`:                               "field target",
		`{"id":"1-1-1-1-1","message_type":"x","sender":"pcp://a"}`:                            "field sender",
		`{"id":"1-1-1-1-1","message_type":"x","in_reply_to":"x"}`:                             "field in_reply_to",
		`{"id":"1-1-1-1-1","message_type":"x","expires":"2026"}`:                              "the key /expires is not known",
		`{"id":"1-1-1-1-1","message_type":"x"} {}`:                                            "the message",
		`{"id":"11111111-1111-1111-1111-` + strings.Repeat("1", 60) + `","message_type":"x"}`: "is not a UUID",
		`{"id":"1-1-1-1-1-1","message_type":"x"}`:                                             "is not a UUID",
		`{"id":"1--1-1-1","message_type":"x"}`:                                                "is not a UUID",
		`{"id":"1-1-1-1-","message_type":"x"}`:                                                "is not a UUID",
	} {
		if _, err := wire.V2.Decode([]byte(text)); err == nil || fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
	if m, err := wire.V2.Decode([]byte(`{"id":"1-1-1-1-1","message_type":"x"}`)); err != nil || m.Data != nil {
		t.Errorf("the shortest message: %+v, %v", m, err)
	}
}

// Programs write what they like, and pxp-agent passes it on: in JSON that is no UTF-8, what cannot be read becomes U+FFFD.
func TestTextThatIsNoUTF8(t *testing.T) {
	t.Parallel()
	const written = `{"n":1.50,"a":1,"a":2,"stderr":"e ` + "\xff\xfe" + `é\ud800 \u00e9 ` + "\xed\xa0\x80" + `\n"}`
	const want = `{"n":1.50,"a":1,"a":2,"stderr":"e ` + "\ufffd\ufffdé\ufffd é \ufffd\ufffd\ufffd" + `\n"}`
	one, err := wire.V1.Decode(frame("\x01", envelope("", ""), "\x02", written))
	if err != nil || string(one.Data) != want {
		t.Errorf("PCP 1: %s, %v, want %s", one.Data, err, want)
	}
	two, err := wire.V2.Decode([]byte(`{"id":"1-1-1-1-1","message_type":"x","data":` + written + `}`))
	if err != nil || string(two.Data) != want {
		t.Errorf("PCP 2: %s, %v, want %s", two.Data, err, want)
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"": true, wire.InventoryRequest: true, "pcp://*/agent_1": true, "a\x00": false, "a b": false, "ä": false, "a%20": false, "a\n": false,
	} {
		if wire.IsPlain(s) != want {
			t.Errorf("%q", s)
		}
	}
}
