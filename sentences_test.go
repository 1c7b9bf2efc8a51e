package tutti_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// counted is a number before a noun in the plural. A limit ("at most %d nodes"), what exceeds one, and a number that is a name ("job %d runs") are
// left out.
var (
	counted = regexp.MustCompile(`(\S+ )?\S*%d (more |of %d |other |certificate )*(answer|argument|attempt|blob|catalog|certificate|change|check|component|day|edge|entrie|error|` +
		`event|file|finding|group|line|message|mistake|name|node|page|path|place|question|refusal|release|report|request|resource|row|run|table|time|value|version|wave)s\b`)
	except = regexp.MustCompile(`^(most|than|to|all|the|job|release|a)`)
)

// Numbers in sentences agree with their nouns: "1 node", never "1 nodes". fault.Count writes them. What goes to a log or to other programs is no
// sentence: it is wrapped with fmt.Errorf or explain.
func TestNumbersAgree(t *testing.T) {
	t.Parallel()
	for path, file := range wholeFiles(t) {
		if pkg := packageOf(path); strings.HasSuffix(pkg, "test") || strings.HasPrefix(pkg, "bench") || strings.HasPrefix(pkg, "e2e") || pkg == "internal/sim" {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				switch to := call.Fun.(type) {
				case *ast.SelectorExpr:
					return to.Sel.Name != "Errorf"
				case *ast.Ident:
					return to.Name != "explain"
				}
			}
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			sentence, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range counted.FindAllString(sentence, -1) {
				if !except.MatchString(found) && !strings.Contains(sentence, "at most %d") {
					t.Errorf("%s: %q in %q: write the number and its noun with fault.Count", path, found, sentence)
				}
			}
			return true
		})
	}
}
