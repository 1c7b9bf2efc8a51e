package sim

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strings"
	"time"
)

// roles and systems are what simulated nodes are.
var (
	roles   = []string{"web", "db", "cache", "worker", "proxy"}
	systems = []struct{ family, name, release string }{
		{"Debian", "Debian", "12.11"}, {"Debian", "Ubuntu", "24.04"}, {"RedHat", "Rocky", "9.4"}, {"RedHat", "AlmaLinux", "9.4"}, {"Suse", "SLES", "15.6"},
	}
)

// Facts are a simulated node's facts: its name decides them.
func Facts(name string) map[string]any {
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, name)
	n := int(hash.Sum32())
	host, domain, _ := strings.Cut(name, ".")
	os := systems[n%len(systems)]
	major, _, _ := strings.Cut(os.release, ".")
	return map[string]any{
		"simulated": true, "role": roles[n/8%len(roles)], "kernel": "Linux", "clientcert": name,
		"os":         map[string]any{"family": os.family, "name": os.name, "release": map[string]any{"full": os.release, "major": major}},
		"networking": map[string]any{"hostname": host, "domain": domain, "fqdn": name, "ip": fmt.Sprintf("10.%d.%d.%d", n>>16&0xff, n>>8&0xff, n&0xff)},
		"processors": map[string]any{"count": 1 << (n >> 4 & 3)}, "memory": map[string]any{"system": map[string]any{"total_bytes": 1 << (31 + n>>6&3)}},
	}
}

// SendFacts submits a node's facts as an agent does, on a connection of its own.
func SendFacts(ctx context.Context, url, name string, identity *tls.Config, facts map[string]any) error {
	now := time.Now()
	body, err := json.Marshal(map[string]any{
		"name": name, "values": facts, "timestamp": now.Format(time.RFC3339Nano), "expiration": now.Add(24 * time.Hour).Format(time.RFC3339Nano),
	})
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: identity, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url+"/puppet/v3/facts/"+name+"?environment=production", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("send facts of %s: %w", name, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		return fmt.Errorf("send facts of %s: status %d: %s", name, response.StatusCode, text)
	}
	return nil
}

// SubmitFacts submits values as all of a node's facts apart from a run, as tutti agent does, on a
// connection of its own. number is above that of the node's submission before.
func SubmitFacts(ctx context.Context, url, name string, identity *tls.Config, number int64, values map[string]any) error {
	body, err := json.Marshal(map[string]any{"number": number, "timestamp": time.Now().Format(time.RFC3339Nano), "values": values})
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: identity, DisableKeepAlives: true}, Timeout: time.Minute}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url+"/node/v1/facts", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("submit facts of %s: %w", name, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusAccepted {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		return fmt.Errorf("submit facts of %s: status %d: %s", name, response.StatusCode, text)
	}
	return nil
}
