package fleet

import (
	"encoding/hex"
	"math/big"
	"strings"
)

// Serial is the serial number of a certificate as people read it: hexadecimal, in capital letters and whole bytes, as openssl and Puppet's CA print it.
func Serial(n *big.Int) string {
	if n.Sign() == 0 {
		return "00"
	}
	return strings.ToUpper(hex.EncodeToString(n.Bytes()))
}
