//! The terms of texts, the records they are kept in, and the excerpts that show them.

use lockgate::store::search::excerpt::excerpt;
use lockgate::store::search::segment::{BlockDraft, Posting, blocks, record};
use lockgate::store::search::terms::{QueryTerm, bucket, each_term, query_terms};

fn terms(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    each_term(text, &mut |term, at| all.push(format!("{term}@{at}")));
    all
}

fn asks(text: &str) -> Vec<(String, bool)> {
    query_terms(text).into_iter().map(|it| (it.term, it.begins)).collect()
}

#[test]
fn terms_are_lower_case_and_have_their_position() {
    assert_eq!(
        terms("Der Ölpreis: 1.5, don't"),
        ["der@0", "ölpreis@4", "1@14", "5@16", "don@19", "t@23"]
    );
    assert_eq!(terms("  "), Vec::<String>::new());
}

#[test]
fn a_text_without_spaces_becomes_character_pairs_and_its_last_character() {
    assert_eq!(terms("上海天 ok"), ["上海@0", "海天@3", "天@6", "ok@10"]);
    assert_eq!(terms("v2版"), ["v2@0", "版@2"]);
}

#[test]
fn a_query_has_each_term_once_and_no_single_character_of_a_pair() {
    assert_eq!(asks("海天 海天"), [("海天".to_owned(), false)]);
    assert_eq!(asks("雨 Rain rain"), [("雨".to_owned(), true), ("rain".to_owned(), false)]);
}

#[test]
fn a_single_character_matches_the_pairs_that_begin_with_it() {
    assert_eq!(bucket("雨"), bucket("雨天"));
    assert!(query_terms("雨")[0].means("雨天".as_bytes()));
    assert!(!query_terms("rain")[0].means(b"rainy"));
}

#[test]
fn a_very_long_word_is_indexed_by_its_beginning() {
    let long = "x".repeat(100_000);
    let [QueryTerm { term, .. }] = &query_terms(&long)[..] else { panic!("one word is one term") };
    assert_eq!(term.len(), 64);
}

fn of_term(record: &[u8], from: u64, to: u64, wanted: &str) -> Option<Vec<Posting>> {
    let mut found = Vec::new();
    for block in blocks(record, from, to)? {
        let mut bytes: &[u8] = &[];
        block.each_term(&mut |term, postings| {
            if term == wanted.as_bytes() {
                bytes = postings;
            }
        })?;
        found.extend(block.postings(bytes)?);
    }
    Some(found)
}

fn drafted(from: u64, to: u64, texts: &[(u64, u64, &str)]) -> Vec<Vec<u8>> {
    let mut draft = BlockDraft::new(from);
    texts.iter().for_each(|(seq, nth, text)| draft.add(*seq, *nth, text));
    draft.finish(to)
}

#[test]
fn merged_records_hold_the_terms_of_both() {
    let word = bucket("rain");
    let one = drafted(0, 300, &[(5, 1, "rain and rain"), (200, 0, "no rain")]);
    let two = drafted(300, 364, &[(301, 0, "rain")]);
    let first = record(&[], &[one[word].clone()]);
    let both = record(&[&first], &[two[word].clone()]);
    let found = of_term(&both, 0, 364, "rain").unwrap();
    let seen: Vec<_> = found.iter().map(|it| (it.seq, it.nth, it.length, it.count)).collect();
    assert_eq!(seen, [(5, 1, 3, 2), (200, 0, 2, 1), (301, 0, 1, 1)]);
    assert_eq!(found[0].places, [0, 2]);
}

#[test]
fn a_damaged_record_is_never_read_as_a_valid_one() {
    let word = bucket("rain");
    let whole = record(&[], &[drafted(0, 64, &[(5, 1, "rain and rain")])[word].clone()]);
    assert!(of_term(&whole, 0, 64, "rain").is_some());
    for n_bytes in 0..whole.len() {
        assert!(blocks(&whole[..n_bytes], 0, 64).is_none(), "cut at {n_bytes}");
    }
    let mut foreign = whole.clone();
    foreign[0] = 9;
    assert!(blocks(&foreign, 0, 64).is_none());
    assert!(blocks(&whole, 0, 65).is_none(), "it covers something else");
}

#[test]
fn an_excerpt_shows_the_place_with_most_words_of_the_query() {
    let text = format!("rain {} rain in Oslo tomorrow {}", "x ".repeat(300), "y ".repeat(300));
    let found = excerpt(&text, &query_terms("rain oslo")).unwrap();
    assert!(found.starts_with('…') && found.ends_with('…'), "{found}");
    assert!(found.contains("rain in Oslo"), "{found}");
    assert!(found.len() <= 246, "{found}");
}

#[test]
fn an_excerpt_never_cuts_a_character_in_two() {
    let text = "上海的天气很好".repeat(200);
    let found = excerpt(&text, &query_terms("天气")).unwrap();
    assert!(found.contains("天气"), "{found}");
}

#[test]
fn a_text_without_a_word_of_the_query_has_no_excerpt() {
    assert_eq!(excerpt("sunshine", &query_terms("rain")), None);
    assert_eq!(excerpt("Rain.", &query_terms("rain")).unwrap(), "Rain.");
}
