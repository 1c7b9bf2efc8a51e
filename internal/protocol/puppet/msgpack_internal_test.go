package puppet

import (
	"encoding/json"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestMessagePackKeepsDocuments(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`null`, `true`, `{}`, `[]`, `{"z":1,"a":{"y":[],"b":[{"q":-7,"p":"ä"}]},"m":null}`,
		`[9223372036854775807,18446744073709551615,-9223372036854775808,0.5,-1.25]`,
	} {
		packed, err := toMessagePack([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		back, err := fromMessagePack(string(packed))
		if err != nil || back != text {
			t.Errorf("%s came back as %s (%v)", text, back, err)
		}
	}
	const specified = "\x82\xa1b\x92\x01\xa1x\xa1a\xc0"
	if packed, err := toMessagePack([]byte(`{"b":[1,"x"],"a":null}`)); err != nil || string(packed) != specified {
		t.Errorf("packed as %q (%v)", packed, err)
	}
}

func TestWhatIsNoMessagePackIsRefused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "\x82\xa1b", "\xc1", "\xc0\xc0", `{"a":1}`, "\xdf\xff\xff\xff\xff"} {
		if got, err := fromMessagePack(body); fault.Of(err) != fault.Invalid || err == nil {
			t.Errorf("%q: %q, %v, want Invalid", body, got, err)
		}
	}
}

// FuzzMessagePack: what is read is JSON, and never more than a few times as long.
func FuzzMessagePack(f *testing.F) {
	for _, seed := range []string{
		"\x82\xa1b\x92\x01\xa1x\xa1a\xc0", "\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00", "\x91\x91\x91\xc3", "\xc4\x02ab", "\xd6\xff\x00\x00\x00\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		text, err := fromMessagePack(string(body))
		if err != nil {
			return
		}
		if len(text) > 64+32*len(body) {
			t.Fatalf("%d bytes became %d", len(body), len(text))
		}
		if !json.Valid([]byte(text)) {
			return // ParseFacts and ParseReport say what is wrong
		}
		packed, err := toMessagePack([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if _, err := fromMessagePack(string(packed)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	})
}
