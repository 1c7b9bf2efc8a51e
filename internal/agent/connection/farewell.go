package connection

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gobwas/ws"
)

// farewell is what stood in a server's close frame.
type farewell struct {
	code   int
	reason string
}

// The codes that say more than "the connection ended".
const (
	codeTooLarge   = int(ws.StatusMessageTooBig)
	codeSuperseded = 4000 // of brokers up to 1.5; later ones end without a word
	codeRefused    = 4002
	codeNoCert     = 4003
)

func (f farewell) Error() string {
	text := "the server said farewell: " + strconv.Itoa(f.code)
	if f.reason != "" {
		text += " " + f.reason
	}
	switch f.code {
	case codeSuperseded:
		text += " (another client uses the same certificate)"
	case codeRefused:
		text += " (its rules do not let this certificate in)"
	case codeNoCert:
		text += " (it does not accept the certificate; was it issued by the CA of this server?)"
	}
	return text
}

// hopeless tells that trying again soon would not help.
func hopeless(err error) bool {
	if _, refused := errors.AsType[refusal](err); refused {
		return true
	}
	f, ok := errors.AsType[farewell](err)
	return ok && (f.code == codeSuperseded || f.code == codeRefused || f.code == codeNoCert)
}

// refusal is a broker's no to an association.
type refusal struct{ reason string }

func (r refusal) Error() string {
	return fmt.Sprintf("the server refuses the association: %q", r.reason)
}

// largest is what the server says is the largest message it takes, in the reason of a
// close frame; 0 if it does not say.
func (f farewell) largest() int64 {
	if f.code != codeTooLarge {
		return 0
	}
	_, rest, _ := strings.Cut(f.reason, "maximum size [")
	digits, _, _ := strings.Cut(rest, "]")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
