package relaytest_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/relay/relaytest"
)

func TestLog(t *testing.T) {
	t.Parallel()
	relaytest.RunLog(t, func(*testing.T) relaytest.Backend { return relaytest.Fake() })
}
