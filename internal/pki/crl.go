package pki

import (
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// keyCompromise is the reason that every revocation gives (RFC 5280, 5.3.1).
const keyCompromise = 1

// crl is our own signed list.
type crl struct {
	pem     []byte
	entries int
	madeAt  time.Time
	ends    time.Time
}

func encodeCRL(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

func parseCRLs(text []byte) ([]*x509.RevocationList, error) {
	var lists []*x509.RevocationList
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "X509 CRL" {
			continue
		}
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "revocation list %d is broken", len(lists)+1)
		}
		lists = append(lists, list)
	}
	if len(lists) == 0 {
		return nil, fault.New(fault.Invalid, "there is no revocation list in PEM")
	}
	return lists, nil
}

// mergeUpper keeps the newest list of each CA above the signing one, in the
// order of the chain.
func mergeUpper(root *ca, old []byte, lists []*x509.RevocationList) ([]byte, error) {
	newest := map[int]*x509.RevocationList{}
	if len(old) > 0 {
		kept, err := parseCRLs(old)
		if err != nil {
			return nil, err
		}
		lists = append(kept, lists...)
	}
	for _, list := range lists {
		i := slices.IndexFunc(root.chain, func(c *x509.Certificate) bool { return list.CheckSignatureFrom(c) == nil })
		if i < 0 {
			return nil, fault.New(fault.Invalid, "the revocation list of %q is not signed by a CA of this fleet's bundle", list.Issuer)
		}
		if have := newest[i]; have == nil || listNumber(list).Cmp(listNumber(have)) > 0 {
			newest[i] = list
		}
	}
	var merged []byte
	for i := range root.chain {
		if list := newest[i]; list != nil && i > 0 {
			merged = append(merged, encodeCRL(list.Raw)...)
		}
	}
	return merged, nil
}

func listNumber(list *x509.RevocationList) *big.Int {
	if list.Number == nil {
		return new(big.Int)
	}
	return list.Number
}
