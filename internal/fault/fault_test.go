package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestUnknownErrorsAreInternalAndSilent(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("read the secret: %w", io.ErrUnexpectedEOF)
	if fault.Of(err) != fault.Internal || fault.Detail(err) != "" {
		t.Errorf("got %v, %q", fault.Of(err), fault.Detail(err))
	}
}

func TestAKindSurvivesWrapping(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("lease run 7: %w", fault.Wrap(fault.Unavailable, io.EOF, "the disk is full"))
	if fault.Of(err) != fault.Unavailable || fault.Detail(err) != "the disk is full" || !errors.Is(err, io.EOF) {
		t.Errorf("got %v, %q", fault.Of(err), fault.Detail(err))
	}
	if got := fault.RetryAfter(fmt.Errorf("x: %w", fault.Later(3*time.Second, "busy"))); got != 3*time.Second {
		t.Errorf("retry after %v", got)
	}
}

func TestAnInternalFaultShowsNothing(t *testing.T) {
	t.Parallel()
	if got := fault.Detail(fault.Wrap(fault.Internal, io.EOF, "the key is 42")); got != "" {
		t.Errorf("shown: %q", got)
	}
}

func TestNamesRoundTrip(t *testing.T) {
	t.Parallel()
	for kind := fault.Internal; kind <= fault.Unavailable; kind++ {
		if got := fault.ParseKind(kind.String()); got != kind {
			t.Errorf("%v became %v", kind, got)
		}
	}
	if fault.ParseKind("odd") != fault.Internal || fault.Kind(99).String() != "internal" {
		t.Error("an unknown kind is not internal")
	}
}
