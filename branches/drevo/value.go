package drevo

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// valueKind is Cypher's word for a value.
type valueKind string

const (
	kindNull         valueKind = ""
	kindBoolean      valueKind = "BOOLEAN"
	kindInteger      valueKind = "INTEGER"
	kindFloat        valueKind = "FLOAT"
	kindString       valueKind = "STRING"
	kindList         valueKind = "LIST"
	kindMap          valueKind = "MAP"
	kindNode         valueKind = "NODE"
	kindRelationship valueKind = "RELATIONSHIP"
	kindPath         valueKind = "PATH"
)

// The JSON of what is no scalar. It is format (docs/drevo.md). An id is drevo's own
// and good inside of one result only: it is used again.
type (
	jsonNode struct {
		ID         string         `json:"id"`
		Labels     []string       `json:"labels"`
		Properties map[string]any `json:"properties"`
	}
	jsonRelationship struct {
		ID         string         `json:"id"`
		Start      string         `json:"start"`
		End        string         `json:"end"`
		Type       string         `json:"type"`
		Properties map[string]any `json:"properties"`
	}
	jsonPath struct {
		Nodes         []jsonNode         `json:"nodes"`
		Relationships []jsonRelationship `json:"relationships"`
	}
)

// rowValue is the form of a value in database/sql.
func rowValue(v any) (driver.Value, valueKind, error) {
	kind := kindList
	switch v := v.(type) {
	case nil:
		return nil, kindNull, nil
	case bool:
		return v, kindBoolean, nil
	case int64:
		return v, kindInteger, nil
	case float64:
		return v, kindFloat, nil
	case string:
		return v, kindString, nil
	case neo4j.Node:
		kind = kindNode
	case neo4j.Relationship:
		kind = kindRelationship
	case neo4j.Path:
		kind = kindPath
	case map[string]any:
		kind = kindMap
	case []any:
	default:
		return nil, kindNull, fmt.Errorf("rhizodat: read row: drevo sent a %T, which has no form here", v)
	}
	text, err := json.Marshal(jsonValue(v))
	if err != nil {
		return nil, kindNull, fmt.Errorf("rhizodat: read row: %w", err)
	}
	return text, kind, nil
}

// jsonValue is a value inside of JSON.
func jsonValue(v any) any {
	switch v := v.(type) {
	case neo4j.Node:
		return nodeJSON(v)
	case neo4j.Relationship:
		return relationshipJSON(v)
	case neo4j.Path:
		path := jsonPath{Nodes: make([]jsonNode, len(v.Nodes)), Relationships: make([]jsonRelationship, len(v.Relationships))}
		for i, n := range v.Nodes {
			path.Nodes[i] = nodeJSON(n)
		}
		for i, r := range v.Relationships {
			path.Relationships[i] = relationshipJSON(r)
		}
		return path
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = jsonValue(item)
		}
		return items
	case map[string]any:
		return properties(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil // as drevo itself stores it
		}
	}
	return v
}

func properties(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for key, v := range m {
		out[key] = jsonValue(v)
	}
	return out
}

func nodeJSON(n neo4j.Node) jsonNode {
	return jsonNode{ID: n.ElementId, Labels: n.Labels, Properties: properties(n.Props)}
}

func relationshipJSON(r neo4j.Relationship) jsonRelationship {
	return jsonRelationship{
		ID: r.ElementId, Start: r.StartElementId, End: r.EndElementId, Type: r.Type, Properties: properties(r.Props),
	}
}
