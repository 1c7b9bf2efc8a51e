package diff

// file is what a static catalog says of one file. What only tells where the file
// lies among the code is left out.
type file struct {
	Type         string // file, directory or link
	Checksum     string // "{sha256}…"; its type in braces
	Destination  string // of a link
	Owner, Group string
	Mode         string // as it is written: a number, base 10
}

// metadata reads {"title": {metadata}}.
func (p *parser) metadata() error {
	return p.object(func(title string) error {
		var f file
		err := p.file(&f, new(string))
		p.put(title, "", f)
		return err
	})
}

// recursiveMetadata reads {"title": {"source": [{metadata}]}}. Where several sources
// have a file of the same name, the agent takes the first one.
func (p *parser) recursiveMetadata() error {
	return p.object(func(title string) error {
		return p.object(func(string) error {
			return p.list(func() error {
				var f file
				var path string
				err := p.file(&f, &path)
				if path == "." {
					path = ""
				}
				p.put(title, path, f)
				return err
			})
		})
	})
}

func (p *parser) put(title, path string, f file) {
	if p.files == nil {
		p.files = map[string]map[string]file{}
	}
	below := p.files[title]
	if below == nil {
		below = map[string]file{}
		p.files[title] = below
	}
	if _, there := below[path]; !there {
		below[path] = f
	}
}

func (p *parser) file(f *file, path *string) error {
	return p.object(func(key string) error {
		switch key {
		case "type":
			return p.word(&f.Type)
		case "destination":
			return p.word(&f.Destination)
		case "relative_path":
			return p.word(path)
		case "owner":
			return p.scalar(&f.Owner)
		case "group":
			return p.scalar(&f.Group)
		case "mode":
			return p.scalar(&f.Mode)
		case "checksum":
			return p.checksum(&f.Checksum)
		default:
			return p.dec.SkipValue()
		}
	})
}

func (p *parser) checksum(to *string) error {
	if p.dec.PeekKind() != '{' {
		return p.dec.SkipValue()
	}
	return p.object(func(key string) error {
		if key == "value" {
			return p.word(to)
		}
		return p.dec.SkipValue()
	})
}

// scalar reads a number or a string.
func (p *parser) scalar(to *string) error {
	switch p.dec.PeekKind() {
	case '"', '0':
		token, err := p.dec.ReadToken()
		if err == nil {
			*to = token.String()
		}
		return err
	default:
		return p.dec.SkipValue()
	}
}
