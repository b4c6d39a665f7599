package rhizodat

import "time"

// options is the table of protocol.md §2. An option that is added here never
// breaks a DSN: a store of the same name is told from it by its value.
var options = []option{
	textOption("journal", "URL", "", "where commits of several branches are decided",
		func(c *Config) *string { return &c.Journal.URL }, anyText),
	textOption("default", "store", "", "store of a statement that names none",
		func(c *Config) *string { return &c.Default }, anyText),
	sizeOption("min_free", "0", "free bytes a unit's stores must report at S3; 0 is off", 0,
		func(c *Config) *int64 { return &c.MinFree }),
	durationOption("commit_timeout", "20s", "bounds S4 to S7 and Rollback; below stale_after",
		func(c *Config) *time.Duration { return &c.CommitTimeout }),
	durationOption("finish_timeout", "5s", "bounds S8 and S9 before Commit returns",
		func(c *Config) *time.Duration { return &c.FinishTimeout }),
	durationOption("stale_after", "30s", "age at which recovery takes an unchanged record",
		func(c *Config) *time.Duration { return &c.StaleAfter }),
	durationOption("alert_after", "10m", "age at which an unfinished unit is stuck",
		func(c *Config) *time.Duration { return &c.AlertAfter }),
	orOff(durationOption("lock_timeout", "10s", "bounds waits for locks with several stores",
		lockTimeout), lockTimeout),
	sizeOption("max_payload", "64MiB", "most bytes a unit stages in the journal", 1,
		func(c *Config) *int64 { return &c.MaxPayload }),
	durationOption("retain", "24h", "how long final records and markers are kept",
		func(c *Config) *time.Duration { return &c.Retain }),
	durationOption("max_clock_drift", "60s", "how far two clocks may be apart",
		func(c *Config) *time.Duration { return &c.MaxClockDrift }),
	wordOption("on_pending", "what Commit returns of a pending unit", onPendingWords,
		func(c *Config) *OnPending { return &c.OnPending }),
	wordOption("markers", "on: also with one store and no journal", markersWords,
		func(c *Config) *Markers { return &c.Markers }),
	wordOption("ping", "what a ping reaches", pingWords,
		func(c *Config) *Ping { return &c.Ping }),
	countOption("journal_conns", "16", "size of the journal's own pool",
		func(c *Config) *int { return &c.JournalConns }),
	textOption("journal_label", "label", "DatJournal", "label of a drevo journal's nodes",
		func(c *Config) *string { return &c.JournalLabel }, labelReason),
	durationOption("commit_wait", "45s", "wait of a one-branch Iceberg commit for its table",
		func(c *Config) *time.Duration { return &c.CommitWait }),
	textOption("application_name", "text", "", "what the stores show of a session",
		func(c *Config) *string { return &c.ApplicationName }, anyText),
}

func lockTimeout(c *Config) *time.Duration { return &c.LockTimeout }

// anyText is for texts that the checks of the whole Config judge, if any.
func anyText(string) string { return "" }

// labelReason keeps a label to what Cypher takes without quotes, because it
// stands in the journal's statements as it is.
func labelReason(text string) string {
	if shown(text) == "" {
		return "not a label: a letter, then letters, digits and _, 32 at most"
	}
	return ""
}
