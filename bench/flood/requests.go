package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// flood sends requests from all addresses at once, as fast as they are answered. Meanwhile holders of tokens join,
// one after the other, each over a connection of its own.
func (s settings) flood(ctx context.Context, server *rivals.Tutti) (row measure.Row, note string, err error) {
	client, err := server.API()
	if err != nil {
		return row, "", err
	}
	bodies := make([][]byte, s.Requests)
	var making errgroup.Group
	making.SetLimit(8)
	for i := range bodies {
		making.Go(func() (err error) {
			bodies[i], err = certificateRequest(floodName(i), "")
			return err
		})
	}
	if err := making.Wait(); err != nil {
		return row, "", err
	}
	var refused atomic.Int64
	watch, err := measure.Start(ctx, server.Usage)
	if err != nil {
		return row, "", err
	}
	began, over := time.Now(), make(chan struct{})
	senders, sending := errgroup.WithContext(ctx)
	var next atomic.Int64
	for n := range s.Addresses * s.Senders {
		senders.Go(func() error {
			from := stranger(server, source(n%s.Addresses))
			defer from.CloseIdleConnections()
			for i := next.Add(1) - 1; i < int64(len(bodies)); i = next.Add(1) - 1 {
				url := server.LocalhostURL() + "/puppet-ca/v1/certificate_request/" + floodName(int(i))
				status, _, err := exchange(sending, from, http.MethodPut, url, plain, bodies[i])
				if err != nil {
					return err
				}
				if status != http.StatusOK {
					refused.Add(1)
				}
			}
			return nil
		})
	}
	var joined []time.Duration
	var joinErr error
	var joining sync.WaitGroup
	joining.Go(func() { joined, joinErr = s.joins(ctx, server, client, over) })
	err = senders.Wait()
	took := time.Since(began)
	close(over)
	joining.Wait()
	if err == nil {
		err = joinErr
	}
	span, err := watch.Stop(err)
	if err != nil {
		return row, "", err
	}
	waiting, err := countWaiting(ctx, client)
	joins := measure.Summarize(joined)
	row = measure.Row{Server: "tutti", Case: "requests", Figures: map[string]float64{
		"requests": float64(s.Requests), "seconds": took.Seconds(), "per_second": float64(s.Requests) / took.Seconds(), "refused": float64(refused.Load()),
		"waiting": float64(waiting), "joins": float64(len(joined)), "join_p50_ms": ms(joins.P50), "join_max_ms": ms(joins.Max),
		"server_cores": span.Cores(span.Server),
	}}
	note = fmt.Sprintf("requests: a holder of a token is signed in within %s at most, aim below %s: %s",
		joins.Max.Round(time.Millisecond), aimJoin, verdict(joins.Max < aimJoin))
	return row, note, err
}

// joins has holders of tokens join until over, and one at least.
func (s settings) joins(ctx context.Context, server *rivals.Tutti, client *api.Client, over <-chan struct{}) (took []time.Duration, err error) {
	for n := 0; ; n++ {
		select {
		case <-over:
			if n > 0 {
				return took, nil
			}
		case <-ctx.Done():
			return took, ctx.Err()
		default:
		}
		token, err := api.JoinTokenCreate.Call(ctx, client, api.JoinTokenRequest{})
		if err != nil {
			return took, err
		}
		name := fmt.Sprintf("holder-%d.test", n)
		body, err := certificateRequest(name, token.Token)
		if err != nil {
			return took, err
		}
		began := time.Now()
		if err := join(ctx, server, name, body); err != nil {
			return took, err
		}
		took = append(took, time.Since(began))
	}
}

// join sends a request and fetches the certificate, from an address that sends nothing else.
func join(ctx context.Context, server *rivals.Tutti, name string, body []byte) error {
	from := stranger(server, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	defer from.CloseIdleConnections()
	base := server.LocalhostURL() + "/puppet-ca/v1/certificate"
	if status, text, err := exchange(ctx, from, http.MethodPut, base+"_request/"+name, plain, body); err != nil || status != http.StatusOK {
		return fmt.Errorf("the request of %s: status %d, %v: %s", name, status, err, text) //nolint:errorlint // it may be nil
	}
	status, text, err := exchange(ctx, from, http.MethodGet, base+"/"+name, "", nil)
	if err != nil || status != http.StatusOK || !bytes.Contains(text, []byte("BEGIN CERTIFICATE")) {
		return fmt.Errorf("the certificate of %s: status %d, %v: %s", name, status, err, text) //nolint:errorlint // it may be nil
	}
	return nil
}

func countWaiting(ctx context.Context, client *api.Client) (n int, err error) {
	dropped, err := api.RequestClean.Call(ctx, client, api.RequestCleanRequest{})
	return dropped.Dropped, err
}

// plain is the type of a certificate request's body.
const plain = "text/plain"

func floodName(n int) string { return fmt.Sprintf("flood-%d.test", n) }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// stranger is a client without a certificate that connects from an address.
func stranger(server *rivals.Tutti, from netip.Addr) *http.Transport {
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), Timeout: 30 * time.Second}
	port := server.URL()[len("https://127.0.0.1"):]
	return &http.Transport{
		TLSClientConfig: server.Trust(), MaxIdleConnsPerHost: 1,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp4", "127.0.0.1"+port)
		},
	}
}

func exchange(ctx context.Context, from *http.Transport, method, url, kind string, body []byte) (status int, text []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", kind)
	}
	answer, err := from.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err = io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	return answer.StatusCode, text, err
}

// certificateRequest makes one with a key of its own (RFC 2986). A token is its challenge password, which
// crypto/x509 does not write.
func certificateRequest(name, token string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	type attribute struct {
		ID     asn1.ObjectIdentifier
		Values []asn1.RawValue `asn1:"set"`
	}
	attributes := []attribute{}
	if token != "" {
		text, err := asn1.MarshalWithParams(token, "utf8")
		if err != nil {
			return nil, err
		}
		attributes = append(attributes, attribute{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}, []asn1.RawValue{{FullBytes: text}}})
	}
	content, err := asn1.Marshal(struct {
		Version    int
		Subject    pkix.RDNSequence
		PublicKey  asn1.RawValue
		Attributes []attribute `asn1:"tag:0,set"`
	}{0, pkix.Name{CommonName: name}.ToRDNSequence(), asn1.RawValue{FullBytes: public}, attributes})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	signature, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		return nil, err
	}
	der, err := asn1.Marshal(struct {
		Content   asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		asn1.RawValue{FullBytes: content},
		pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}},
		asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)},
	})
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), err
}
