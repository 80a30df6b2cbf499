//! Statements about accounts on the target: done, or refused with a reason that has no secret.

use apply::mysql::server::errors::{failed, is_privilege};
use engine::failure::{Failure, FailureKind};
use wire::{Connection, Error};

/// Why the target has not done it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: u16,
    pub text: String,
}

/// Whether the text of a statement has a hash: what a server says of it may quote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    Open,
    HasHash,
}

impl Refusal {
    /// The server does not know a word of the statement.
    pub fn is_unknown_word(&self) -> bool {
        UNKNOWN_WORD.contains(&self.code)
    }

    /// A table, a routine or a package that is not there. Views and routines come later.
    pub fn is_missing_object(&self) -> bool {
        [1146, 1305].contains(&self.code)
    }

    pub fn is_denied(&self) -> bool {
        is_privilege(self.code) || [1045, 1370, 1698].contains(&self.code)
    }
}

const UNKNOWN_WORD: [u16; 3] = [1064, 1149, 3619];

/// Whether it was done.
///
/// # Errors
/// The target can not be asked, or has something else to do first.
pub fn attempt(control: &mut Connection, sql: &str, secrecy: Secrecy) -> Result<Result<(), Refusal>, Failure> {
    let Err(error) = control.execute(sql) else { return Ok(Ok(())) };
    let Some(refusal) = refusal(&error, secrecy) else { return Err(failed(error)) };
    match failed(error).kind {
        FailureKind::Refused | FailureKind::Divergence => Ok(Err(refusal)),
        kind => {
            Err(Failure::new(kind, format!("an account statement of the copy: {}", refusal.text)).code(refusal.code))
        }
    }
}

fn refusal(error: &Error, secrecy: Secrecy) -> Option<Refusal> {
    /// Denied, no plugin, a rule for passwords, another form of a hash, an account that is there already.
    const WITHOUT_QUOTES: [u16; 9] = [1044, 1045, 1142, 1227, 1396, 1524, 1819, 1827, 4052];
    let Error::Server { code, message, .. } = error else { return None };
    let text = match secrecy {
        _ if UNKNOWN_WORD.contains(code) => format!("the target does not know it (error {code})"),
        Secrecy::HasHash if !WITHOUT_QUOTES.contains(code) => format!("error {code} of the target"),
        Secrecy::Open | Secrecy::HasHash => format!("{message} (error {code})"),
    };
    Some(Refusal { code: *code, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_quotes_is_not_said() {
        let error = |code, message: &str| Error::Server {
            code,
            sqlstate: "HY000".to_owned(),
            message: message.to_owned(),
            statement_index: 0,
        };
        let said = |code, message, secrecy| refusal(&error(code, message), secrecy).map(|refusal| refusal.text);
        let hash = "near '*SECRET'";
        for code in [1064, 1149, 1210, 1470, 3619] {
            assert!(said(code, hash, Secrecy::HasHash).is_some_and(|text| !text.contains("SECRET")), "{code}");
        }
        assert_eq!(
            said(1524, "Plugin 'x' is not loaded", Secrecy::HasHash).as_deref(),
            Some("Plugin 'x' is not loaded (error 1524)")
        );
        assert_eq!(said(1146, "no d.t", Secrecy::Open).as_deref(), Some("no d.t (error 1146)"));
    }
}
