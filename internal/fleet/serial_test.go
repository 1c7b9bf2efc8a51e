package fleet_test

import (
	"math/big"
	"testing"

	"github.com/tutti-project/tutti/internal/fleet"
)

// The texts are those of `openssl x509 -noout -serial`.
func TestSerial(t *testing.T) {
	t.Parallel()
	for number, want := range map[int64]string{0: "00", 1: "01", 255: "FF", 256: "0100", 0xabcdef: "ABCDEF"} {
		if got := fleet.Serial(big.NewInt(number)); got != want {
			t.Errorf("%d is shown as %s, want %s", number, got, want)
		}
	}
}
