package rhizodat

// ParseDSN reads a DSN, whose grammar and options the package comment lists. It
// connects to nothing, and refuses whatever the text alone shows to be wrong
// with a [*DSNError] that says at which byte. Whether this program has the
// adapters that the DSN asks for is for [Config.Validate] to say.
func ParseDSN(dsn string) (*Config, error) {
	words, fault := splitWords(dsn)
	if fault != nil {
		return nil, fault
	}
	p := parser{
		config:  &Config{Stores: map[string]StoreConfig{}},
		stores:  map[string]int{},
		options: map[string]int{},
	}
	for _, w := range words {
		if fault := p.take(w); fault != nil {
			return nil, fault.at(w.offset)
		}
	}
	if fault := p.config.check(); fault != nil {
		return nil, fault.at(p.offset(fault))
	}
	return p.config, nil
}

// parser fills a Config and keeps where each word of the text began.
type parser struct {
	config          *Config
	stores, options map[string]int
}

// take decides what a word is: a value that begins with a known scheme is a
// store whatever its key, but journal, so that an option of a later release
// never breaks a DSN. A duplicate is one within its kind for the same reason.
func (p *parser) take(w word) *DSNError {
	o, isOption := findOption(w.key)
	_, known := knownScheme(w.value)
	switch {
	case w.key != journalKey && (known || !isOption && looksLikeURL(w.value)):
		return p.takeStore(w)
	case isOption:
		return p.takeOption(o, w)
	}
	fault := optionFault(w.key, "unknown option")
	fault.Nearest = nearest(w.key, optionKeys())
	if fault.Key == "" {
		// What stands there may be half a password: a distance to it tells of it.
		fault.Reason, fault.Nearest = "neither a store's name nor an option's before the \"=\"", ""
	}
	return fault
}

func (p *parser) takeStore(w word) *DSNError {
	if fault := nameFault(w.key); fault != nil {
		return fault
	}
	if _, twice := p.stores[w.key]; twice {
		return storeFault(w.key, duplicate, "")
	}
	p.stores[w.key] = w.offset
	p.config.Stores[w.key] = StoreConfig{URL: w.value}
	return nil
}

func (p *parser) takeOption(o option, w word) *DSNError {
	if _, twice := p.options[w.key]; twice {
		return optionFault(w.key, duplicate)
	}
	p.options[w.key] = w.offset
	if reason := o.set(p.config, w.value); reason != "" {
		return optionFault(w.key, reason)
	}
	return nil
}

const (
	journalKey = "journal"
	duplicate  = "it is given twice"
)

// offset finds the word a fault of the whole Config is about: the later of two.
func (p *parser) offset(fault *DSNError) int {
	of := p.options
	if fault.noun == nounStore {
		of = p.stores
	}
	return max(of[fault.Key], of[fault.Other])
}
