package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// part is one statement of a message of ours. Its text is the same in every
// unit, so that the server parses and plans it once for a session; what varies
// is in args, as text. literal is the same with the arguments written out, for
// sessions that must not prepare (a pooler in between); empty without args.
type part struct {
	text    string
	args    []string
	literal string
	once    bool // the text names a gid: it is of no use to any other unit
}

// send sends parts as one message and waits for all answers. The first error
// ends it: no part behind it has run.
func (s *Session) send(ctx context.Context, parts ...part) (answers, error) {
	if !s.prepares {
		return ask(ctx, s.client(), literally(parts))
	}
	batch := &pgconn.Batch{}
	for _, p := range parts {
		if p.once {
			batch.ExecParams(p.text, nil, nil, nil, nil)
			continue
		}
		name, err := s.plan(ctx, p.text)
		if err != nil {
			return nil, err
		}
		values := make([][]byte, len(p.args))
		for i, arg := range p.args {
			values[i] = []byte(arg)
		}
		batch.ExecPrepared(name, values, nil, nil)
	}
	got, err := s.client().PgConn().ExecBatch(ctx, batch).ReadAll()
	if code(err) == codeNoSuchStatement {
		s.forget()
	}
	return got, err
}

// forget is for DEALLOCATE ALL, DISCARD ALL, or a pooler that hands out another
// server: this session prepares nothing of ours any more.
func (s *Session) forget() { s.prepares, s.plans, s.firsts = false, nil, nil }

// plan prepares a text once for the session's life and returns its name. The
// name says the text: behind a pooler that nobody has told us of, another
// session's statement of that name must be the same one.
func (s *Session) plan(ctx context.Context, text string) (string, error) {
	if name, ok := s.plans[text]; ok {
		return name, nil
	}
	name := planName(text)
	if _, err := s.client().PgConn().Prepare(ctx, name, text, nil); err != nil {
		return "", err
	}
	if s.plans == nil {
		s.plans = map[string]string{}
	}
	s.plans[text] = name
	return name, nil
}

func planName(text string) string {
	digest := sha256.Sum256([]byte(text))
	return "rhizodat_" + hex.EncodeToString(digest[:16])
}

// literally writes a message for the simple protocol.
func literally(parts []part) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		if texts[i] = p.text; p.literal != "" {
			texts[i] = p.literal
		}
	}
	return strings.Join(texts, ";")
}
