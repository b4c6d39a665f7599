package step

import "net/http"

// Transport is a client's http.RoundTripper for requests of a step's effect. As
// the last thing before a request is sent it asks for the step's standing, and
// it sets the idempotency key. A request whose context is not that of a step
// passes as it is. The zero Transport is ready to use.
type Transport struct {
	Base   http.RoundTripper // nil is http.DefaultTransport
	Header string            // of the idempotency key; empty is Idempotency-Key
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip implements http.RoundTripper. The error of an owner that does not
// stand any more is *Superseded or ErrLapsed, found inside of *url.Error: nothing
// was sent. A key that the request has already is left: one step that sends
// several requests gives each its own.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	ctx := req.Context()
	c, ok := ctx.Value(claimKey{}).(*claim)
	if !ok {
		return base.RoundTrip(req)
	}
	header := t.Header
	if header == "" {
		header = "Idempotency-Key"
	}
	req = req.Clone(ctx)
	if req.Header.Get(header) == "" {
		req.Header.Set(header, idempotencyKey(c.key))
	}
	if err := c.standing(ctx); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper closes it, also on errors
		}
		return nil, err
	}
	return base.RoundTrip(req)
}
