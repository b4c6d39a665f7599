module github.com/rhizodat/rhizodat-go/testbed/clickhouse

go 1.26.0

require github.com/ebitengine/purego v0.10.1
