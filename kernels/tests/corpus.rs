//! Texts found by the fuzzer, one for each path that no other text covers.

mod hostile;

use std::path::Path;

#[test]
fn no_text_of_the_corpus_does_harm() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/program");
    let (mut all, mut programs) = (0, 0);
    for entry in std::fs::read_dir(folder).expect("the corpus is there") {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("a file");
        let Ok(text) = String::from_utf8(bytes) else { continue };
        all += 1;
        programs += hostile::treat(&text) as usize;
    }
    assert!(programs > 20 && all > programs, "{programs} programs of {all} texts try little");
}
