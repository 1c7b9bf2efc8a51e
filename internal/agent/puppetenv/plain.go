package puppetenv

import "regexp"

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Plain is what Puppet prints without its colours: it paints its errors also where nobody sees colours.
func Plain(text string) string { return colours.ReplaceAllString(text, "") }
