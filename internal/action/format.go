package action

import (
	"errors"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Format is a form that a text can have, by a name that schemas use. Values that are no text have every format: their type is another matter.
type Format struct {
	Name    string
	Expects string // what a text must be, after "it must be"
	fits    func(text string) bool
}

// Formats are those that MCollective's and Choria's validators check, beside the standard ones of JSON schemas.
func Formats() []Format {
	return []Format{
		{"shellsafe", "a text without the characters ` $ ; | & > <", func(s string) bool { return !strings.ContainsAny(s, "`$;|&><") }},
		{"service_name", "the name of a service: letters, digits and _ . @ : + - \\", serviceName.MatchString},
		{"package_name", "the name of a package: letters, digits and _ . + : @ / ~ -", packageName.MatchString},
		{"puppet_variable", "a name of letters, digits and _", variable.MatchString},
		{"puppet_tags", "tags of letters, digits and _, separated by commas; :: may be in them", puppetTags},
		{"puppet_server_address", "a host name or an address, with :PORT if it is not the usual one", serverAddress},
		{"puppet_resource", "a resource such as File[/etc/hosts]", resource.MatchString},
		{"ipaddress", "an IP address", func(s string) bool { _, err := netip.ParseAddr(s); return err == nil }},
		{"regular_expression", "a regular expression", func(s string) bool { _, err := regexp.Compile(s); return err == nil }},
		{"duration_go", "a duration such as 90s or 2h", func(s string) bool { _, err := time.ParseDuration(s); return err == nil }},
	}
}

var (
	serviceName = regexp.MustCompile(`\A[A-Za-z0-9_.@:+\\-]+\z`)
	packageName = regexp.MustCompile(`\A[A-Za-z0-9_.@:+/~-]+\z`)
	variable    = regexp.MustCompile(`\A[A-Za-z0-9_]+\z`)
	resource    = regexp.MustCompile(`\A[A-Za-z0-9_:]+\[[^\[\]]+\]\z`)
	hostname    = regexp.MustCompile(`\A[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\z`)
)

var errFormat = errors.New("it has another format")

func (f Format) validate(value any) error {
	if s, ok := value.(string); ok && !f.fits(s) {
		return errFormat
	}
	return nil
}

func describeFormat(name string) string {
	formats := Formats()
	if i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == name }); i >= 0 {
		return formats[i].Expects
	}
	return "of the format " + name
}

func puppetTags(s string) bool {
	for tag := range strings.SplitSeq(s, ",") {
		for part := range strings.SplitSeq(tag, "::") {
			if !variable.MatchString(part) {
				return false
			}
		}
	}
	return true
}

func serverAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	} else if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err == nil || hostname.MatchString(host)
}
