package puppet

import (
	"net/http"
	"slices"
	"strings"
)

// format is a way to write an answer down.
type format struct {
	mime        string
	contentType string
	rich        bool // tells the agent that rich values are spelled out
	binary      bool
	messagePack bool
}

var (
	formatJSON     = format{mime: "application/json", contentType: "application/json;charset=utf-8"}
	formatRichJSON = format{mime: "application/vnd.puppet.rich+json", contentType: "application/vnd.puppet.rich+json;charset=utf-8", rich: true}
	// PSON is JSON that also allows bytes that are no UTF-8; ours always are.
	formatPSON     = format{mime: "text/pson", contentType: "text/pson"}
	formatRichPSON = format{mime: "application/vnd.puppet.rich+pson", contentType: "application/vnd.puppet.rich+pson", rich: true}
	// Documents are JSON inside: see toMessagePack.
	formatMessagePack     = format{mime: "application/x-msgpack", contentType: "application/x-msgpack", messagePack: true}
	formatRichMessagePack = format{mime: "application/vnd.puppet.rich+msgpack", contentType: "application/vnd.puppet.rich+msgpack", rich: true, messagePack: true}
	formatBinary          = format{mime: "application/octet-stream", contentType: "application/octet-stream", binary: true}
)

var (
	dataFormats    = []format{formatJSON, formatPSON, formatMessagePack}
	catalogFormats = []format{formatRichJSON, formatJSON, formatRichPSON, formatPSON, formatRichMessagePack, formatMessagePack}
	richFormats    = []format{formatRichJSON, formatRichPSON, formatRichMessagePack}
	fileFormats    = []format{formatBinary}
)

// accepted picks the first of the client's formats that is offered. The order
// counts, weights do not: that is how agents and Puppet Server see it.
func (c *call) accepted(offered []format) (format, error) {
	values := c.r.Header["Accept"]
	if len(values) == 0 {
		return format{}, problemf(http.StatusBadRequest, missingHeader, "Missing required Accept header")
	}
	for _, value := range values {
		for word := range strings.SplitSeq(value, ",") {
			mime, _, _ := strings.Cut(word, ";")
			mime = strings.ToLower(strings.TrimSpace(mime))
			if mime == "*/*" {
				return offered[0], nil
			}
			if i := slices.IndexFunc(offered, func(f format) bool { return f.mime == mime }); i >= 0 {
				return offered[i], nil
			}
		}
	}
	return format{}, problemf(http.StatusNotAcceptable, unsupportedFormat,
		"No supported formats are acceptable (Accept: %.200s)", printable(strings.Join(values, ", ")))
}

// sent makes sure that the request's body has an allowed format.
func (c *call) sent(allowed []format) error {
	header := c.r.Header.Get("Content-Type")
	if header == "" {
		return problemf(http.StatusBadRequest, missingHeader,
			"No Content-Type header was received, it isn't possible to unserialize the request")
	}
	mime, _, _ := strings.Cut(header, ";")
	mime = strings.ToLower(strings.TrimSpace(mime))
	if slices.ContainsFunc(allowed, func(f format) bool { return f.mime == mime }) {
		return nil
	}
	return problemf(http.StatusUnsupportedMediaType, unsupportedMediaType,
		"Client sent a mime-type (%.100s) that doesn't correspond to a format we support", printable(header))
}

// takesGzip tells whether the answer may be compressed.
func (c *call) takesGzip() bool {
	for word := range strings.SplitSeq(c.r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(word, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			weight = strings.ReplaceAll(weight, " ", "")
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}
