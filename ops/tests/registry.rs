//! Ops by name: registration, owners, and the reasons recorded when they are unregistered.

use minitensor::prelude::*;
use minitensor::{CustomOpBuilder, OpRef, registry};
use minitensor_ops as _;

fn make(name: &str) -> Result<OpRef> {
    Ok(CustomOpBuilder::new(name, 1).forward(|x| x[0].copied()).build()?.definition())
}

#[test]
fn ops_come_and_go_together() -> Result<()> {
    let [one, two, other] = [make("together::one")?, make("together::two")?, make("together::two")?];
    let error = registry::register_all(&[one.clone(), make("swish")?], Some("noise")).unwrap_err();
    assert!(error.message().starts_with("op 'swish' is already registered: by ops/src"), "{error}");
    assert!(!registry::has(&one));
    registry::register_all(std::slice::from_ref(&one), None)?;
    let new = registry::register_all(&[one.clone(), two.clone()], Some("noise"))?;
    assert!(matches!(new.as_slice(), [op] if op.is(&two)), "{new:?}");
    assert!(registry::has(&two) && !registry::has(&other));
    for name in ["together::one", "together::two"] {
        assert_eq!(registry::owner(name).as_deref(), Some("noise"));
    }
    let error = registry::register_all(std::slice::from_ref(&two), Some("second")).unwrap_err();
    assert!(error.message().contains(" of plugin 'noise', and again by "), "{error}");
    let gone = registry::unregister_all(&[one, other.clone(), two], Some("was here"));
    assert_eq!(gone.len(), 2);
    assert_eq!(registry::get("together::one").unwrap_err().message(), "op 'together::one' was here");
    registry::register_all(&[other], None)?;
    assert_eq!(registry::reason("together::two"), None);
    registry::unregister("together::two")?;
    let error = registry::get("together::two").unwrap_err();
    assert!(error.message().starts_with("there is no op 'together::two'"), "{error}");
    Ok(())
}

#[test]
fn the_latest_reasons_are_kept() -> Result<()> {
    for i in 0..1100 {
        let op = make(&format!("many::op{i}"))?;
        registry::register_all(std::slice::from_ref(&op), None)?;
        registry::unregister_all(&[op], Some("was here"));
    }
    assert_eq!(registry::reason("many::op0"), None);
    assert_eq!(registry::reason("many::op1099").as_deref(), Some("op 'many::op1099' was here"));
    let kept = (0..1100).filter(|i| registry::reason(&format!("many::op{i}")).is_some()).count();
    assert!(kept <= 1024, "{kept}");
    assert!(registry::has_reasons("many") && !registry::has_reasons("man"));
    Ok(())
}
