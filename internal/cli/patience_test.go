package cli

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slow answers after some time.
type slow time.Duration

func (s slow) RoundTrip(*http.Request) (*http.Response, error) {
	<-time.After(time.Duration(s))
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// What takes longer than a second is shown, and goes away; what is quicker shows nothing.
func TestWaitingIsShown(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		900 * time.Millisecond:  "",
		2500 * time.Millisecond: "\r\x1b[2KWaiting for the answer of tutti.test, 1s\r\x1b[2KWaiting for the answer of tutti.test, 2s\r\x1b[2K",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			p := &patience{next: slow(wait), out: &out, width: 80}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://tutti.test/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := p.RoundTrip(request)
			if err != nil || answer.Body.Close() != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Errorf("%s: %q, want %q", wait, out.String(), strings.ReplaceAll(want, "\r", "\\r"))
			}
		})
	}
}
