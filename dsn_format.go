package rhizodat

import "strings"

// FormatDSN writes the DSN that [ParseDSN] reads as an equal Config: stores by
// name, the journal, then every option that is not its field's zero value. The
// text holds the passwords: it is for programs, [Config.String] is for people.
//
// It fails with a [*DSNError] if the Config is not valid as text, and if it has
// parts that are none: a Connector, Options, a Logger, an Observer.
func (c *Config) FormatDSN() (string, error) {
	if fault := c.notText(); fault != nil {
		return "", fault
	}
	if fault := c.check(); fault != nil {
		return "", fault
	}
	return c.join(func(s StoreConfig) string { return quote(s.URL) }), nil
}

// notText finds what a text cannot hold.
func (c *Config) notText() *DSNError {
	const reason, way = "a Connector or Options have no place in a DSN", "hand the Config to NewConnector"
	for _, name := range c.StoreNames() {
		if s := c.Stores[name]; s.Connector != nil || s.Options != nil {
			return storeFault(name, reason, way)
		}
	}
	if c.Journal.Connector != nil || c.Journal.Options != nil {
		fault := optionFault(journalKey, reason)
		fault.Way = way
		return fault
	}
	if c.Logger != nil || c.Observer != nil {
		return textFault("a Logger or an Observer has no place in a DSN", way)
	}
	return nil
}

// join writes the words, with store to write what a store's name stands for.
func (c *Config) join(store func(StoreConfig) string) string {
	var words []string
	for _, name := range c.StoreNames() {
		words = append(words, name+"="+store(c.Stores[name]))
	}
	if !c.Journal.IsZero() {
		words = append(words, journalKey+"="+store(StoreConfig(c.Journal)))
	}
	for _, o := range options {
		if text := o.get(c); text != "" && o.key != journalKey {
			words = append(words, o.key+"="+quote(text))
		}
	}
	return strings.Join(words, " ")
}
