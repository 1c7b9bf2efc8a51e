package rivals

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// getOK asks once on a connection of its own and says whether the answer is
// 200 and holds the word.
func getOK(ctx context.Context, url string, config *tls.Config, word string) bool {
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	return err == nil && response.StatusCode == http.StatusOK && strings.Contains(string(body), word)
}

// packageVersion asks dpkg; empty where there is none.
func packageVersion(ctx context.Context, name string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${Version}", name).Output() //nolint:gosec // names are this package's own
	if err != nil {
		return ""
	}
	return string(out)
}
