package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// synonyms are verbs that mean one thing to those who type them. A noun has one of them, which its help shows; the others do the
// same and are not shown. What is kept on the server is deleted. Puppet's own words stay where they mean more or less than that:
// a node is purged (its certificate stays), a certificate is cleaned (it is revoked, too). What is under way is ended by the
// word that its state has then: a job is stopped, a preview cancelled, a release aborted.
var synonyms = [][]string{
	{"delete", "remove", "purge", "clean"},
	{"stop", "cancel", "abort"},
}

// misleading are synonyms that would promise something else: `puppet node clean` revokes the certificate, too.
var misleading = []string{"tutti node clean"}

// addSynonyms adds to a noun's verbs the words that are not shown.
func addSynonyms(noun *cobra.Command, verbs []declared, a *app) {
	for _, v := range verbs {
		shown := v.command(a)
		for _, words := range synonyms {
			if !slices.Contains(words, shown.Name()) {
				continue
			}
			for _, word := range words {
				if has(noun, word) || slices.Contains(misleading, "tutti "+noun.Name()+" "+word) {
					continue
				}
				other := v.command(a)
				other.Use, other.Hidden = word+strings.TrimPrefix(other.Use, shown.Name()), true
				noun.AddCommand(other)
			}
		}
	}
}

func has(noun *cobra.Command, word string) bool {
	return slices.ContainsFunc(noun.Commands(), func(c *cobra.Command) bool { return c.Name() == word || c.HasAlias(word) })
}
