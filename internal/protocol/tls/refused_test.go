package tls

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A client whose certificate does not stand up is in the operator's log, with the reason; not without end, and nothing else is.
func TestRefusedHandshakesAreTold(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(1_000_000, 0)
	h := &handshakeLog{log: slog.New(slog.NewTextHandler(&out, nil)), now: func() time.Time { return now }}
	say := func(text string) string {
		t.Helper()
		out.Reset()
		if _, err := h.Write([]byte(text + "\n")); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	const from = "http: TLS handshake error from [::1]:4711: "
	const expired = from +
		"tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-26T12:00:00Z is after 2026-11-25T12:00:00Z"
	for text, want := range map[string]string{
		expired: "its certificate has expired",
		strings.Replace(expired, "is after", "is before", 1):                                              "is not valid yet",
		from + "tls: failed to verify certificate: x509: certificate signed by unknown authority":         "comes from another CA",
		from + "tls: failed to verify certificate: x509: certificate specifies an incompatible key usage": "incompatible key usage",
	} {
		if got := say(text); !strings.Contains(got, want) || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "remote=[::1]:4711") {
			t.Errorf("%s: %s", text, got)
		}
	}
	for _, text := range []string{from + "EOF", from + "remote error: tls: bad certificate", "http: response.Write on hijacked connection"} {
		if got := say(text); got != "" {
			t.Errorf("%s: %s", text, got)
		}
	}
	told := 0
	for range 100 {
		if say(expired) != "" {
			told++
		}
	}
	if told > refusalsTold || told == 0 {
		t.Errorf("%d of 100 in a minute are told", told)
	}
	now = now.Add(time.Minute)
	if got := say(expired); !strings.Contains(got, fmt.Sprintf("untold=%d", 100-told)) {
		t.Errorf("a minute later: %s", got)
	}
}
