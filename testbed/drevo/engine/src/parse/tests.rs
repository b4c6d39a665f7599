use super::*;

#[test]
fn statements_and_refusals() {
    for good in [
        "RETURN 1",
        "match (a:`odd name`)-[r:R|S {x: $0}]->()<--(b) where not a.x in [1, -2.5e3] and b is not null return *;",
        "MERGE (n:L {t: 'it\\'s'}) ON CREATE SET n.v = 1, n += {a: null} ON MATCH SET n:M REMOVE n.x // end",
        "CALL drevo.tx.listPrepared() YIELD gid AS g RETURN g ORDER BY g DESC SKIP 1 LIMIT $n",
    ] {
        parse(good).unwrap_or_else(|e| panic!("{good}: {e}"));
    }
    for bad in [
        "",
        "RETURN",
        "RETURN 1 RETURN 2",
        "MATCH (n)",
        "RETURN 'x",
        "RETURN 1; RETURN 2",
        "CREATE (n",
        "SHOW DATABASES",
    ] {
        assert!(parse(bad).unwrap_err().starts_with("syntax error at line 1"), "{bad}");
    }
}

#[test]
fn no_text_makes_the_parser_panic() {
    let parts = [
        "MATCH ", "(", ")", "n", ":", "[", "]", "-", ">", "<", "{", "}", "'", "`", "$", "1.", "1e", "ü", ".",
        "RETURN ", "\\", "//", "=",
    ];
    let mut x = 88172645463325252u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            text.push_str(parts[(x % parts.len() as u64) as usize]);
        }
        let _ = parse(&text);
    }
}
