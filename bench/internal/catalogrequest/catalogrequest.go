// Package catalogrequest makes the requests for catalogs that a stock agent sends.
//
// A Facts may be used concurrently. Errors are those of files and JSON.
package catalogrequest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/bench/rivals/load"
)

// Facts are those that all made-up nodes have in common.
type Facts map[string]any

// Read reads facts from a JSON file.
func Read(path string) (Facts, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	var facts Facts
	if err := json.Unmarshal(text, &facts); err != nil {
		return nil, fmt.Errorf("read facts %s: %w", path, err)
	}
	return facts, nil
}

// Of gives a node's facts with its own name and a made-up release in them.
func (f Facts) Of(node, release string) Facts {
	values := maps.Clone(f)
	host, domain, _ := strings.Cut(node, ".")
	values["clientcert"], values["fqdn"], values["hostname"], values["domain"] = node, node, host, domain
	values["os"] = withRelease(f["os"], release)
	return values
}

// withRelease copies the fact `os` and sets os.release.full.
func withRelease(os any, full string) any {
	outer, ok := os.(map[string]any)
	if !ok {
		return os
	}
	outer = maps.Clone(outer)
	if release, ok := outer["release"].(map[string]any); ok {
		release = maps.Clone(release)
		release["full"] = full
		outer["release"] = release
	}
	return outer
}

// New is what a 7.23 agent sends; the facts are escaped twice.
func New(node string, values Facts) (load.Request, error) {
	now := time.Now()
	facts, err := json.Marshal(map[string]any{
		"name": node, "values": values,
		"timestamp": now.Format(time.RFC3339Nano), "expiration": now.Add(30 * time.Minute).Format(time.RFC3339Nano),
	})
	if err != nil {
		return load.Request{}, fmt.Errorf("write facts: %w", err)
	}
	form := url.Values{
		"environment": {"production"}, "configured_environment": {"production"}, "check_environment": {"true"},
		"facts_format": {"application/json"}, "facts": {strings.ReplaceAll(url.QueryEscape(string(facts)), "+", "%20")},
		"transaction_uuid": {uuid.NewString()}, "job_uuid": {""}, "static_catalog": {"true"},
		"checksum_type": {"sha256.sha384.sha512.sha224.md5"},
	}
	return load.Request{
		Method: http.MethodPost, Path: "/puppet/v3/catalog/" + node + "?environment=production",
		Header: http.Header{
			"Content-Type": {"application/x-www-form-urlencoded"}, "X-Puppet-Version": {"7.23.0"},
			"User-Agent": {"Puppet/7.23.0 Ruby/3.1.2-p20 (x86_64-linux-gnu)"},
			"Accept":     {"application/vnd.puppet.rich+json, application/json"}, "Accept-Encoding": {"gzip;q=1.0,deflate;q=0.6,identity;q=0.3"},
		},
		Body: []byte(form.Encode()),
	}, nil
}
