package settings

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Exempt is the setting connection_limit_exempt.
func (c Config) Exempt() ([]netip.Prefix, error) {
	return networks("connection_limit_exempt", c.ConnectionLimitExempt)
}

// Proxies is the setting proxy_protocol_from.
func (c Config) Proxies() ([]netip.Prefix, error) {
	named, err := networks("proxy_protocol_from", c.ProxyProtocolFrom)
	if slices.ContainsFunc(named, func(n netip.Prefix) bool { return n.Bits() == 0 }) {
		return nil, Bad("proxy_protocol_from", "it names everybody: then every client could say that it is another one; name the load balancers")
	}
	return named, err
}

// networks reads addresses and networks of a setting.
func networks(key string, texts []string) (all []netip.Prefix, err error) {
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if address, bare := netip.ParseAddr(text); bare == nil {
			network, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return nil, Bad(key, "%q is neither an address nor a network such as 192.0.2.0/24", text)
		}
		all = append(all, network.Masked())
	}
	return all, nil
}

// checkConsole returns an Invalid fault for settings of the console that cannot be used.
func (c Config) checkConsole() error {
	if c.ConsoleURL != "" && !strings.HasPrefix(c.ConsoleURL, "https://") && !strings.HasPrefix(c.ConsoleURL, "http://") {
		return Bad("console_url", "%q does not begin with https:// or http://", c.ConsoleURL)
	}
	if c.ConsoleListen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.ConsoleListen)
	if err != nil {
		return Bad("console_listen", "%q is not HOST:PORT or :PORT", c.ConsoleListen)
	}
	if address, err := netip.ParseAddr(host); c.ConsolePlain && host != "localhost" && (err != nil || !address.IsLoopback()) {
		return Bad("console_plain", "without TLS the console is served on the loopback only, as on 127.0.0.1:8143; console_listen is %q", c.ConsoleListen)
	}
	return nil
}

// ServerNames is every name that this server may be called by.
func (c Config) ServerNames() []string {
	names := []string{ServerName(), "localhost", "127.0.0.1", "::1"}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" && host != "0.0.0.0" && host != "::" {
		names = append(names, host)
	}
	names = append(names, c.DNSAltNames...)
	slices.Sort(names[1:])
	return slices.Compact(names)
}

// ServerName is what this host is called.
func ServerName() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
