package drevo

import (
	"math"
	"testing"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// The JSON of values that the rig does not make, a path above all, is format.
func TestJSONOfValues(t *testing.T) {
	a := neo4j.Node{ElementId: "7", Labels: []string{"A", "B"}, Props: map[string]any{"l": []any{int64(1), nil}, "nan": math.NaN()}}
	b := neo4j.Node{ElementId: "8", Labels: []string{"A"}}
	r := neo4j.Relationship{ElementId: "3", StartElementId: "7", EndElementId: "8", Type: "R", Props: map[string]any{"w": 1.5}}
	for _, test := range []struct {
		value any
		kind  valueKind
		want  string
	}{
		{a, kindNode, `{"id":"7","labels":["A","B"],"properties":{"l":[1,null],"nan":null}}`},
		{r, kindRelationship, `{"id":"3","start":"7","end":"8","type":"R","properties":{"w":1.5}}`},
		{
			neo4j.Path{Nodes: []neo4j.Node{b, b}, Relationships: []neo4j.Relationship{r}},
			kindPath,
			`{"nodes":[{"id":"8","labels":["A"],"properties":{}},{"id":"8","labels":["A"],"properties":{}}],` +
				`"relationships":[{"id":"3","start":"7","end":"8","type":"R","properties":{"w":1.5}}]}`,
		},
		{[]any{b, math.Inf(1)}, kindList, `[{"id":"8","labels":["A"],"properties":{}},null]`},
		{map[string]any{"n": b}, kindMap, `{"n":{"id":"8","labels":["A"],"properties":{}}}`},
	} {
		got, kind, err := rowValue(test.value)
		if text, ok := got.([]byte); !ok || string(text) != test.want || kind != test.kind || err != nil {
			t.Errorf("%T: %s, %s, %v, want %s", test.value, got, kind, err, test.want)
		}
	}
	if _, _, err := rowValue(struct{}{}); err == nil {
		t.Error("a value without a form is taken")
	}
}
