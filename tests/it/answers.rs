//! Cases of this domain: `fixtures/cases/answers`.
